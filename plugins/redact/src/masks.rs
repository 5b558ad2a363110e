//! Masking the data in a text.

use std::borrow::Cow;
use std::ops::Range;

use crate::kinds::Kind;

/// The data that is masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masks {
    /// The kinds of data.
    pub kinds: Vec<Kind>,
    /// Further texts.
    pub words: Vec<String>,
}

impl Default for Masks {
    fn default() -> Self {
        Self {
            kinds: Kind::ALL.to_vec(),
            words: Vec::new(),
        }
    }
}

impl Masks {
    /// Reads the settings.
    ///
    /// # Errors
    /// For an unknown setting or kind: a mistyped kind must not stay visible.
    pub fn read<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut masks = Self::default();
        for (key, value) in entries {
            match key {
                "kinds" => {
                    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
                    let kind = |name| Kind::named(name).ok_or_else(|| format!("`{name}` is not a kind of data"));
                    masks.kinds = names.map(kind).collect::<Result<_, _>>()?;
                }
                "words" => {
                    let words = value.lines().map(str::trim).filter(|word| !word.is_empty());
                    masks.words = words.map(str::to_owned).collect();
                }
                _ => return Err(format!("there is no setting `{key}`")),
            }
        }
        Ok(masks)
    }

    /// Replaces the data in a text by its kind in brackets, and the words by `[redacted]`.
    #[must_use]
    pub fn mask_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut replacements: Vec<(Range<usize>, &str)> = Vec::new();
        for kind in &self.kinds {
            replacements.extend(kind.find(text).into_iter().map(|range| (range, kind.name())));
        }
        for word in &self.words {
            let matches = text.match_indices(word.as_str());
            replacements.extend(matches.map(|(at, word)| (at..at + word.len(), "redacted")));
        }
        if replacements.is_empty() {
            return Cow::Borrowed(text);
        }
        replacements.sort_by_key(|(range, _)| (range.start, usize::MAX - range.end));
        let (mut clean, mut at) = (String::with_capacity(text.len()), 0);
        for (range, name) in replacements {
            if range.start >= at {
                clean.push_str(&text[at..range.start]);
                clean.push_str(&format!("[{name}]"));
            }
            // The rest of a range that overlaps the previous one is masked too.
            at = at.max(range.end);
        }
        clean.push_str(&text[at..]);
        Cow::Owned(clean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_words_are_replaced() {
        let masks = Masks::read([("words", "Project X\n\nann@b.example")]);
        let clean = masks.map(|masks| {
            masks
                .mask_text("Project X: ann@b.example.com, 4111111111111111")
                .into_owned()
        });
        assert_eq!(clean.as_deref(), Ok("[redacted]: [email], [card]"));
        let masks = Masks::read([("kinds", "email, iban")]);
        let clean = masks.map(|masks| masks.mask_text("ann@b.example 4111111111111111").into_owned());
        assert_eq!(clean.as_deref(), Ok("[email] 4111111111111111"));
        assert!(matches!(Masks::default().mask_text("nothing here"), Cow::Borrowed(_)));
    }

    #[test]
    fn unknown_settings_are_errors() {
        for wrong in [("kinds", "emails"), ("kind", "email")] {
            assert!(Masks::read([wrong]).is_err(), "{wrong:?}");
        }
    }
}
