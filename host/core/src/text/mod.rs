//! Helpers for text that crosses a boundary: untrusted output, JSON that a model wrote, and names that are derived from it.

mod json;

use sha2::{Digest, Sha256};

pub(crate) use json::id_text;
pub use json::{json_type, parse_json};

/// Hex digits of a [`short_hash`]. Six suffice to distinguish the few names that clash in one conversation.
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
/// Control characters are not printable, except line feed and tab. Neither are the characters that reverse the direction of
/// text. Without them, a plugin cannot move the cursor or disguise a line of the host's output.
#[must_use]
pub fn is_printable(c: char) -> bool {
    let reverses = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (!c.is_control() && !reverses) || matches!(c, '\n' | '\t')
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

/// Returns the first six hex digits of the SHA-256 of an identity. Names that would clash carry them as a suffix.
#[must_use]
pub fn short_hash(identity: &str) -> String {
    let digest = Sha256::digest(identity.as_bytes());
    digest
        .iter()
        .take(HASH_DIGITS / 2)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
