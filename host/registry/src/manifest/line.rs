//! Texts of a manifest that are shown in one line. They are checked by the parser, so that errors have a line and a column.

use serde::{Deserialize, Deserializer, de};

use toolwit_core::text::is_printable;

/// Maximum length of a version and of a name, in characters.
const NAME_CHARS_MAX: usize = 128;

/// Maximum length of the description of a value, in characters. A model reads it if the value is missing.
const DESCRIPTION_CHARS_MAX: usize = 1_000;

pub(super) fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let version = Option::<String>::deserialize(deserializer)?;
    version.map(one_line).transpose()
}

pub(super) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match one_line(String::deserialize(deserializer)?)? {
        name if name.is_empty() => Err(de::Error::custom("the name is empty")),
        name => Ok(name),
    }
}

pub(super) fn file_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let Some(name) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_allowed) {
        return Err(de::Error::custom(
            "it must be a file name of letters, digits, `-`, `_` and `.`",
        ));
    }
    limited(name, NAME_CHARS_MAX).map(Some)
}

pub(super) fn description<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    limited(String::deserialize(deserializer)?, DESCRIPTION_CHARS_MAX)
}

fn one_line<E: de::Error>(text: String) -> Result<String, E> {
    if text.chars().any(|c| c == '\n' || !is_printable(c)) {
        return Err(E::custom("the text has several lines, or invisible characters"));
    }
    limited(text, NAME_CHARS_MAX)
}

fn limited<E: de::Error>(text: String, chars_max: usize) -> Result<String, E> {
    if text.chars().count() > chars_max {
        return Err(E::custom(format_args!(
            "the text is longer than {chars_max} characters"
        )));
    }
    Ok(text)
}
