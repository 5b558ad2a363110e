//! The name by which a model calls a tool.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::limits::NAME_BYTES_MAX;
use crate::text::{HASH_DIGITS, short_hash};

/// A tool name that every provider accepts: `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolName(Arc<str>);

impl ToolName {
    /// Parses a name. Returns `None` if it does not match the pattern.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let mut bytes = name.bytes();
        let first = bytes.next()?;
        let are_others_valid = bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        let is_first_valid = first.is_ascii_alphabetic() || first == b'_';
        let is_valid = is_first_valid && are_others_valid && name.len() <= NAME_BYTES_MAX;
        is_valid.then(|| Self(name.into()))
    }

    /// Converts text to a valid name: each invalid character becomes `_`, and `_` is inserted before a leading digit or `-`.
    ///
    /// Returns `None` if the result would be too long, or if the text has no ASCII letters or digits.
    #[must_use]
    pub fn sanitised(text: &str) -> Option<Self> {
        Self::parse(&sanitise(text)?)
    }

    /// Converts text to a valid name that ends with six hex digits of the hash of an identity. In a text that is too
    /// long, `_` replaces the middle. A text without ASCII letters or digits becomes `tool`.
    #[must_use]
    pub fn hashed(text: &str, identity: &str) -> Self {
        let hash = short_hash(identity);
        let clean = sanitise(text).unwrap_or_else(|| "tool".to_owned());
        let stem_bytes_max = NAME_BYTES_MAX - HASH_DIGITS - 1;
        let stem = if clean.len() > stem_bytes_max {
            let head = (stem_bytes_max - 1) / 2;
            let tail = stem_bytes_max - 1 - head;
            format!("{}_{}", &clean[..head], &clean[clean.len() - tail..])
        } else {
            clean
        };
        Self(format!("{stem}_{hash}").into())
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ToolName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ToolName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("invalid tool name"))
    }
}

/// Replaces invalid characters as [`ToolName::sanitised`] does, without a limit on the length. The result is ASCII. Returns
/// `None` if the text has no ASCII letters or digits.
fn sanitise(text: &str) -> Option<String> {
    let mut clean: String = text
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect();
    if !clean.bytes().any(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    if clean.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        clean.insert(0, '_');
    }
    Some(clean)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_do_not_match_the_pattern_are_rejected() {
        assert!(ToolName::parse("search_customer").is_some());
        for invalid_name in ["", "1st", "-x", "a b", "a.b", "é", &"x".repeat(65)] {
            assert!(ToolName::parse(invalid_name).is_none(), "{invalid_name:?}");
        }
    }

    #[test]
    fn long_names_are_shortened_in_the_middle() {
        let name = ToolName::hashed(&format!("begin_{}_end", "x".repeat(200)), "p/i#f");
        assert_eq!(name.as_str().len(), NAME_BYTES_MAX);
        assert!(name.as_str().starts_with("begin_"));
        assert!(name.as_str().contains("_end_"));
    }

    proptest! {
        #[test]
        fn any_text_converts_to_a_valid_name(text in ".{0,200}", identity in ".{0,40}") {
            let name = ToolName::hashed(&text, &identity);
            prop_assert_eq!(ToolName::parse(name.as_str()), Some(name.clone()));
            if let Some(name) = ToolName::sanitised(&text) {
                prop_assert_eq!(ToolName::parse(name.as_str()), Some(name.clone()));
            }
        }
    }
}
