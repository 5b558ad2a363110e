//! Helpers for text: untrusted output, untrusted JSON and its size, names, and digests.

mod json;
mod json_weight;

use std::io::BufWriter;

use serde::Serialize;
use sha2::{Digest, Sha256};

pub(crate) use json::id_text;
pub use json::{json_type, parse_json};
pub use json_weight::{json_len, json_part_count, json_weight, json_weight_of};

/// The number of hex digits of a [`short_hash`]. Six digits suffice to distinguish the few names that clash in one conversation.
pub(crate) const HASH_DIGITS: usize = 6;

/// Removes the characters that are not [printable](is_printable).
///
/// ```
/// use toolwit_core::text::printable;
///
/// assert_eq!(printable("\x1b[31mred\n"), "[31mred\n");
/// ```
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().filter(|c| is_printable(*c)).collect()
}

/// Returns whether untrusted text may contain this character when it is written to a terminal.
///
/// These characters are not printable: control characters except line feed and tab, characters that change the direction of
/// text, the Unicode separators of lines and paragraphs, and invisible characters other than spaces. So a plugin cannot move the
/// cursor, disguise a line of the host's output, or hide text in the output.
///
/// ```
/// use toolwit_core::text::is_printable;
///
/// assert!("Zürich 東京\n".chars().all(is_printable));
/// assert!(!"\u{1b}\u{9b}\u{202e}\u{200b}\u{feff}\u{e0041}".chars().any(is_printable));
/// ```
#[must_use]
pub fn is_printable(c: char) -> bool {
    (!c.is_control() && !is_invisible(c)) || matches!(c, '\n' | '\t')
}

/// Returns whether a character is invisible and not a space. Such characters are those without a glyph in the Unicode categories
/// Cf, Zl and Zp, variation selectors, and blank letters.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Converts a WIT name to snake case.
///
/// ```
/// assert_eq!(toolwit_core::text::snake_case("get-average-spend"), "get_average_spend");
/// ```
#[must_use]
pub fn snake_case(wit_name: &str) -> String {
    wit_name.replace('-', "_").to_lowercase()
}

/// Returns the SHA-256 of a text, in hex.
#[must_use]
pub fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the SHA-256 of the JSON text of a value, in hex. The text is never in memory as a whole, even for a large value.
///
/// ```
/// use toolwit_core::text::{json_sha256, sha256};
///
/// assert_eq!(json_sha256(&("a", 1)).unwrap(), sha256(r#"["a",1]"#));
/// ```
///
/// # Errors
/// If the value cannot be serialised as JSON.
pub fn json_sha256(value: &impl Serialize) -> serde_json::Result<String> {
    let mut writer = BufWriter::new(Sha256::new());
    serde_json::to_writer(&mut writer, value)?;
    let hasher = writer
        .into_inner()
        .map_err(|error| serde_json::Error::io(error.into_error()))?;
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the first six hex digits of the SHA-256 of an identity. Names that would otherwise be equal contain these digits.
#[must_use]
pub fn short_hash(identity: &str) -> String {
    sha256(identity)[..HASH_DIGITS].to_owned()
}
