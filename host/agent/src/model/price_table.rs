//! Prices and context sizes of models by name.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::price::Price;
use toolwit_core::{Error, ErrorKind, Phase};

/// The list prices and context sizes of well-known models. Providers change them: a table of the user takes precedence.
const LIST_PRICES: &str = include_str!("list_prices.toml");

/// The smallest context of a model, in tokens, that leaves space for a conversation.
const CONTEXT_TOKENS_MIN: u64 = 2_000;

/// Prices of models by name, in dollars per million tokens, and the sizes of their contexts.
///
/// ```
/// use toolwit_agent::model::{Price, PriceTable};
///
/// let table = PriceTable::parse("[my-model]\ninput = 1.0\noutput = 4.0\n")?;
/// assert_eq!(table.price("my-model"), Some(Price::per_million(1.0, 4.0)));
/// assert_eq!(table.price("unknown"), None);
/// assert_eq!(PriceTable::list().context_tokens("gpt-4o"), Some(128_000));
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriceTable(BTreeMap<String, ModelEntry>);

/// The price of a model, and the size of its context.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ModelEntry {
    price: Price,
    context_tokens: Option<u64>,
}

/// A price in TOML.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceEntry {
    input: f64,
    output: f64,
    cached: Option<f64>,
    cache_write: Option<f64>,
    context: Option<u64>,
}

impl PriceTable {
    /// Returns the list prices that this version knows.
    #[must_use]
    pub fn list() -> Self {
        Self::parse(LIST_PRICES).unwrap_or_default()
    }

    /// Parses a table: one section per model, with `input`, `output` and optionally `cached`, `cache_write` and `context`, the largest
    /// request in tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for other keys, for a price that is not a positive number, and for a context that is too small.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refused = |message: String| Error::new(ErrorKind::Configuration, Phase::Registry, message);
        let entries: BTreeMap<String, PriceEntry> =
            toml::from_str(text).map_err(|error| refused(format!("the prices are invalid: {}", error.message())))?;
        let mut prices = BTreeMap::new();
        for (model, entry) in entries {
            let PriceEntry {
                input,
                output,
                cached,
                cache_write,
                context,
            } = entry;
            let all = [Some(input), Some(output), cached, cache_write];
            if all.into_iter().flatten().any(|price| !price.is_finite() || price < 0.0) {
                return Err(refused(format!("a price of `{model}` is not a positive number")));
            }
            if context.is_some_and(|tokens| tokens < CONTEXT_TOKENS_MIN) {
                let message = format!("the context of `{model}` is smaller than {CONTEXT_TOKENS_MIN} tokens");
                return Err(refused(message));
            }
            let price = Price::per_million(input, output).with_cached(cached.unwrap_or(input));
            let entry = ModelEntry {
                price: price.with_cache_write(cache_write.unwrap_or(input)),
                context_tokens: context,
            };
            prices.insert(model, entry);
        }
        Ok(Self(prices))
    }

    /// Adds the prices of another table, which take precedence.
    #[must_use]
    pub fn extended_with(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Returns the price of a model. A dated version, such as `gpt-5-2025-08-07`, has the price of its model.
    #[must_use]
    pub fn price(&self, model: &str) -> Option<Price> {
        self.entry(model).map(|entry| entry.price)
    }

    /// Returns the size of the largest request of a model, in tokens, if it is known.
    #[must_use]
    pub fn context_tokens(&self, model: &str) -> Option<u64> {
        self.entry(model)?.context_tokens
    }

    fn entry(&self, model: &str) -> Option<&ModelEntry> {
        if let Some(entry) = self.0.get(model) {
            return Some(entry);
        }
        let is_version = |known: &&String| {
            let version = model
                .strip_prefix(known.as_str())
                .and_then(|rest| rest.strip_prefix('-'));
            version
                .is_some_and(|version| !version.is_empty() && version.chars().all(|c| c.is_ascii_digit() || c == '-'))
        };
        let known = self.0.keys().filter(is_version).max_by_key(|known| known.len())?;
        self.0.get(known)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn table_of_the_user_takes_precedence_over_list_prices() {
        let list = PriceTable::list();
        assert!(list.price("gpt-5").is_some() && list.price("gpt-5-2025-08-07") == list.price("gpt-5"));
        assert_ne!(
            list.price("gpt-5-mini"),
            list.price("gpt-5"),
            "another model is not a version"
        );
        assert_eq!(list.price("gpt-5-turbo"), None);
        let own = PriceTable::parse("[gpt-5]\ninput = 9.0\noutput = 9.0\ncached = 1.0\n").unwrap();
        let expected = Price::per_million(9.0, 9.0).with_cached(1.0);
        assert_eq!(list.extended_with(own).price("gpt-5"), Some(expected));
    }

    #[test]
    fn invalid_prices_are_refused() {
        for text in [
            "[m]\ninput = 1.0\n",
            "[m]\ninput = -1.0\noutput = 1.0\n",
            "[m]\ninput = nan\noutput = 1.0\n",
            "[m]\ninput = 1.0\noutput = 1.0\ncontext = 100\n",
            "x",
        ] {
            assert_eq!(
                PriceTable::parse(text).unwrap_err().kind,
                ErrorKind::Configuration,
                "{text}"
            );
        }
    }
}
