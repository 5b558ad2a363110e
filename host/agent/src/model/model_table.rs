//! Prices, context sizes and picture support of models by name.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::price::Price;
use toolwit_core::{Error, ErrorKind, Phase};

/// The list prices and context sizes of well-known models. Providers change them, so a host can
/// [extend](ModelTable::extended_with) this table with a table of the user.
const WELL_KNOWN_MODELS: &str = include_str!("model_table.toml");

/// The smallest context of a model, in tokens, that leaves space for a conversation.
const CONTEXT_TOKENS_MIN: u64 = 2_000;

/// Models by name: prices in dollars per million tokens, sizes of contexts, and whether they take pictures.
///
/// ```
/// use toolwit_agent::model::{ModelTable, Price};
///
/// let table = ModelTable::parse("[my-model]\ninput = 1.0\noutput = 4.0\n[local]\ncontext = 32_768\n")?;
/// assert_eq!(table.price("my-model"), Some(Price::per_million(1.0, 4.0)));
/// assert_eq!((table.price("local"), table.context_tokens("local")), (None, Some(32_768)));
/// assert_eq!(ModelTable::parse("[llava]\npictures = true\n")?.accepts_pictures("llava"), Some(true));
/// assert_eq!(ModelTable::well_known().context_tokens("gpt-4o"), Some(128_000));
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelTable(BTreeMap<String, ModelEntry>);

/// The price of a model, the size of its context, and whether it takes pictures.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ModelEntry {
    price: Option<Price>,
    context_tokens: Option<u64>,
    accepts_pictures: Option<bool>,
}

/// The section of a model in TOML: prices in dollars per million tokens, the size of the largest request in tokens, and whether
/// the model takes pictures.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelSection {
    input: Option<f64>,
    output: Option<f64>,
    cached: Option<f64>,
    cache_write: Option<f64>,
    context: Option<u64>,
    pictures: Option<bool>,
}

impl ModelSection {
    /// Returns the price, or `None` if the section has no prices. The error states the violated rule.
    fn price(&self) -> Result<Option<Price>, &'static str> {
        let prices = [self.input, self.output, self.cached, self.cache_write];
        if prices
            .into_iter()
            .flatten()
            .any(|price| !price.is_finite() || price < 0.0)
        {
            return Err("must not have a price that is negative or not a finite number");
        }
        match (self.input, self.output) {
            (Some(input), Some(output)) => {
                let price = Price::per_million(input, output).with_cached(self.cached.unwrap_or(input));
                Ok(Some(price.with_cache_write(self.cache_write.unwrap_or(input))))
            }
            _ if prices.iter().any(Option::is_some) => {
                Err("must have prices of both `input` and `output`, or no prices")
            }
            _ if self.context.is_none() && self.pictures.is_none() => {
                Err("must have prices, a `context` or `pictures`")
            }
            _ => Ok(None),
        }
    }
}

impl ModelTable {
    /// Returns the list prices and contexts of well-known models.
    #[must_use]
    pub fn well_known() -> Self {
        Self::parse(WELL_KNOWN_MODELS).unwrap_or_default()
    }

    /// Parses a table with one section per model. A section has prices, a `context`, `pictures` or several of them. The prices
    /// are `input`, `output` and optionally `cached` and `cache_write`. The `context` is the size of the largest request, in
    /// tokens. `pictures` is whether the model takes pictures.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for invalid TOML, for other keys, for a price that is negative or not finite, for a
    /// section without a key, for prices without `input` or `output`, and for a context of
    /// less than 2,000 tokens.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let invalid = |message: String| Error::new(ErrorKind::Configuration, Phase::Registry, message);
        let sections: BTreeMap<String, ModelSection> = toml::from_str(text)
            .map_err(|error| invalid(format!("the table of models is invalid: {}", error.message())))?;
        let mut entries = BTreeMap::new();
        for (model, section) in sections {
            let price = section
                .price()
                .map_err(|rule| invalid(format!("the model `{model}` {rule}")))?;
            if section.context.is_some_and(|tokens| tokens < CONTEXT_TOKENS_MIN) {
                let message =
                    format!("the `context` of the model `{model}` must be at least {CONTEXT_TOKENS_MIN} tokens");
                return Err(invalid(message));
            }
            let entry = ModelEntry {
                price,
                context_tokens: section.context,
                accepts_pictures: section.pictures,
            };
            entries.insert(model, entry);
        }
        Ok(Self(entries))
    }

    /// Adds the models of another table. For a model in both tables, the values of the other table take precedence.
    #[must_use]
    pub fn extended_with(mut self, other: Self) -> Self {
        for (name, entry) in other.0 {
            let merged = match self.0.get(&name) {
                Some(earlier) => ModelEntry {
                    price: entry.price.or(earlier.price),
                    context_tokens: entry.context_tokens.or(earlier.context_tokens),
                    accepts_pictures: entry.accepts_pictures.or(earlier.accepts_pictures),
                },
                None => entry,
            };
            self.0.insert(name, merged);
        }
        self
    }

    /// Returns the price of a model, if it is known. A dated version that is not in the table, such as
    /// `gpt-5-2025-08-07`, has the price of the model without the date.
    #[must_use]
    pub fn price(&self, model: &str) -> Option<Price> {
        self.entry(model)?.price
    }

    /// Returns the size of the largest request of a model, in tokens, if it is known. A dated version that is not in the table
    /// has the size of the model without the date.
    #[must_use]
    pub fn context_tokens(&self, model: &str) -> Option<u64> {
        self.entry(model)?.context_tokens
    }

    /// Returns whether a model takes pictures, if the table has it. A dated version that is not in the table has the value of the
    /// model without the date.
    #[must_use]
    pub fn accepts_pictures(&self, model: &str) -> Option<bool> {
        self.entry(model)?.accepts_pictures
    }

    /// Returns the entry of a model, or for a dated version without an entry, the entry of the model without the date.
    fn entry(&self, model: &str) -> Option<&ModelEntry> {
        if let Some(entry) = self.0.get(model) {
            return Some(entry);
        }
        let is_dated_version_of = |name: &&String| {
            let date = model
                .strip_prefix(name.as_str())
                .and_then(|suffix| suffix.strip_prefix('-'));
            date.is_some_and(|date| !date.is_empty() && date.chars().all(|c| c.is_ascii_digit() || c == '-'))
        };
        let name = self
            .0
            .keys()
            .filter(is_dated_version_of)
            .max_by_key(|name| name.len())?;
        self.0.get(name)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_dated_version_has_the_price_of_its_model_and_a_user_table_takes_precedence() {
        let well_known = ModelTable::well_known();
        assert!(well_known.price("gpt-5").is_some());
        assert_eq!(well_known.price("gpt-5-2025-08-07"), well_known.price("gpt-5"));
        assert_ne!(
            well_known.price("gpt-5-mini"),
            well_known.price("gpt-5"),
            "another model is not a dated version"
        );
        assert_eq!(well_known.price("gpt-5-turbo"), None);
        let user_table = ModelTable::parse("[gpt-5]\ninput = 9.0\noutput = 9.0\ncached = 1.0\n").unwrap();
        let expected = Price::per_million(9.0, 9.0).with_cached(1.0);
        let extended = well_known.clone().extended_with(user_table);
        assert_eq!(extended.price("gpt-5"), Some(expected));
        let without_pictures = ModelTable::parse("[gpt-5]\npictures = false\n").unwrap();
        let extended = extended.extended_with(without_pictures);
        assert_eq!(
            (extended.price("gpt-5"), extended.accepts_pictures("gpt-5-2025-08-07")),
            (Some(expected), Some(false)),
            "the other values of the model stay"
        );
        assert_eq!(extended.context_tokens("gpt-5"), well_known.context_tokens("gpt-5"));
    }

    #[test]
    fn invalid_tables_are_refused() {
        for text in [
            "[m]\ninput = 1.0\n",
            "[m]\ninput = -1.0\noutput = 1.0\n",
            "[m]\ninput = nan\noutput = 1.0\n",
            "[m]\ninput = 1.0\noutput = 1.0\ncontext = 100\n",
            "[m]\ncached = 1.0\ncontext = 9000\n",
            "[m]\n",
            "x",
        ] {
            assert_eq!(
                ModelTable::parse(text).unwrap_err().kind,
                ErrorKind::Configuration,
                "{text}"
            );
        }
    }
}
