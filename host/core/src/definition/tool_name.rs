//! The name by which a model calls a tool.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::text::{HASH_DIGITS, short_hash};

/// The longest name that every provider accepts, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// A name that any model may be shown: `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolName(Arc<str>);

impl ToolName {
    /// Takes a name as it stands, or refuses it.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let mut bytes = name.bytes();
        let first = bytes.next()?;
        let rest_fits = bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        let fits = (first.is_ascii_alphabetic() || first == b'_') && rest_fits && name.len() <= NAME_BYTES_MAX;
        fits.then(|| Self(name.into()))
    }

    /// Makes a valid name of any text: other characters become `_`, a leading digit gets one before it.
    ///
    /// Returns `None` when the result would be too long, or would hold nothing of the text.
    #[must_use]
    pub fn sanitised(text: &str) -> Option<Self> {
        Self::parse(&sanitise(text)?)
    }

    /// Makes a name of any text that no other identity shares: cut in the middle where it is too long, and ended with
    /// six hex digits of the identity's hash.
    #[must_use]
    pub fn hashed(text: &str, identity: &str) -> Self {
        let hash = short_hash(identity);
        let clean = sanitise(text).unwrap_or_else(|| "tool".to_owned());
        let room = NAME_BYTES_MAX - HASH_DIGITS - 1;
        let stem = if clean.len() > room {
            let head = (room - 1) / 2;
            let tail = room - 1 - head;
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
        Self::parse(&text).ok_or_else(|| de::Error::custom("no tool can have this name"))
    }
}

/// Replaces what a name may not hold; the result is ASCII. `None` when nothing of the text remains.
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
    fn names_outside_the_pattern_are_refused() {
        assert!(ToolName::parse("search_customer").is_some());
        for bad in ["", "1st", "-x", "a b", "a.b", "é", &"x".repeat(65)] {
            assert!(ToolName::parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn a_long_name_is_cut_in_the_middle_and_keeps_both_ends() {
        let name = ToolName::hashed(&format!("begin_{}_end", "x".repeat(200)), "p/i#f");
        assert_eq!(name.as_str().len(), NAME_BYTES_MAX);
        assert!(name.as_str().starts_with("begin_"));
        assert!(name.as_str().contains("_end_"));
    }

    proptest! {
        #[test]
        fn every_text_gives_a_valid_name(text in ".{0,200}", identity in ".{0,40}") {
            let name = ToolName::hashed(&text, &identity);
            prop_assert_eq!(ToolName::parse(name.as_str()), Some(name.clone()));
            if let Some(name) = ToolName::sanitised(&text) {
                prop_assert_eq!(ToolName::parse(name.as_str()), Some(name.clone()));
            }
        }
    }
}
