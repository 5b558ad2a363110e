//! Texts of a manifest with a limited length. Deserialization checks them, so that errors have a line and a column.

use serde::{Deserialize, Deserializer, de};

use toolwit_core::text::is_printable;

/// Maximum length of a version, of the name of an environment variable and of a file name, in characters.
const NAME_CHARS_MAX: usize = 128;

/// Maximum length of the description of an environment variable, in characters. A model reads the description if a
/// required value is missing.
const DESCRIPTION_CHARS_MAX: usize = 1_000;

/// Deserializes the version of a package, which must be one line.
pub(super) fn deserialize_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let version = Option::<String>::deserialize(deserializer)?;
    version.map(require_one_line).transpose()
}

/// Deserializes the name of an environment variable, which must be one line and not empty.
pub(super) fn deserialize_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match require_one_line(String::deserialize(deserializer)?)? {
        name if name.is_empty() => Err(de::Error::custom("the name must not be empty")),
        name => Ok(name),
    }
}

/// Deserializes the name of a file next to the manifest. The name cannot lead to another directory.
pub(super) fn deserialize_file_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let Some(name) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_allowed) {
        return Err(de::Error::custom(
            "it must be a file name of letters, digits, `-`, `_` and `.`, and must not begin with `.`",
        ));
    }
    require_chars_max(name, NAME_CHARS_MAX).map(Some)
}

/// Deserializes the description of an environment variable.
pub(super) fn deserialize_description<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    require_chars_max(String::deserialize(deserializer)?, DESCRIPTION_CHARS_MAX)
}

/// Returns whether a manifest accepts this version.
pub(crate) fn is_valid_version(text: &str) -> bool {
    is_one_line(text) && text.chars().count() <= NAME_CHARS_MAX
}

/// Returns whether a text is one line without invisible characters.
fn is_one_line(text: &str) -> bool {
    text.chars().all(|c| c != '\n' && is_printable(c))
}

/// Returns the text if it is one line without invisible characters and has at most [`NAME_CHARS_MAX`] characters.
fn require_one_line<E: de::Error>(text: String) -> Result<String, E> {
    if !is_one_line(&text) {
        return Err(E::custom("the text must be one line without invisible characters"));
    }
    require_chars_max(text, NAME_CHARS_MAX)
}

/// Returns the text if it has at most `chars_max` characters.
fn require_chars_max<E: de::Error>(text: String, chars_max: usize) -> Result<String, E> {
    if text.chars().count() > chars_max {
        return Err(E::custom(format_args!(
            "the text is longer than {chars_max} characters"
        )));
    }
    Ok(text)
}
