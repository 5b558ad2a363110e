//! Estimates of the memory of parsed JSON.

use std::io::{self, Write};

use serde::Serialize;

/// The estimated memory of a part of parsed JSON in addition to the text of the part, in bytes. A part is a value, or a name in
/// an object. The estimate is the size of an entry of an object, including its share of the unused slots of the map.
const PART_BYTES: usize = 128;

/// Estimates the number of values and names in JSON text. The estimate is never too low. The memory of the parsed JSON depends
/// on this number, and can be a hundred times the size of the text.
///
/// ```
/// use toolwit_core::text::json_part_count;
///
/// assert_eq!(json_part_count(br#"{"a": [1, "b, c"]}"#), 5);
/// ```
#[must_use]
pub fn json_part_count(text: &[u8]) -> usize {
    let mut counter = JsonCounter::default();
    counter.add(text);
    counter.parts + 1
}

/// Estimates the memory that JSON text takes after it is parsed, in bytes.
#[must_use]
pub fn json_weight(text: &[u8]) -> usize {
    text.len()
        .saturating_add(json_part_count(text).saturating_mul(PART_BYTES))
}

/// Returns the length of the JSON text of a value, in bytes, without creating the text. For a value that cannot be
/// serialised, such as a map whose keys are lists, it is the length of the text before the part that fails.
///
/// ```
/// use toolwit_core::text::json_len;
///
/// assert_eq!(json_len(&serde_json::json!({"a": "b"})), 9);
/// ```
#[must_use]
pub fn json_len(value: &impl Serialize) -> usize {
    count_json(value).bytes
}

/// Estimates the memory of a value, in bytes. The estimate is equal to the [`json_weight`] of the JSON text of the value.
#[must_use]
pub fn json_weight_of(value: &impl Serialize) -> u64 {
    let counter = count_json(value);
    (counter.bytes as u64).saturating_add((counter.parts as u64 + 1).saturating_mul(PART_BYTES as u64))
}

fn count_json(value: &impl Serialize) -> JsonCounter {
    let mut counter = JsonCounter::default();
    // The writer never fails. If the value cannot be serialised, only the text before the part that fails is counted.
    let _ = serde_json::to_writer(&mut counter, value);
    counter
}

/// Counts the bytes and the parts of JSON text.
#[derive(Default)]
struct JsonCounter {
    bytes: usize,
    /// The number of characters `,`, `:`, `[` and `{` outside of strings. Each value or name after the first follows one of
    /// them.
    parts: usize,
    is_in_string: bool,
    is_escaped: bool,
}

impl JsonCounter {
    fn add(&mut self, text: &[u8]) {
        self.bytes = self.bytes.saturating_add(text.len());
        for byte in text {
            match (self.is_in_string, byte) {
                (true, _) if self.is_escaped => self.is_escaped = false,
                (true, b'\\') => self.is_escaped = true,
                (_, b'"') => self.is_in_string = !self.is_in_string,
                (false, b',' | b':' | b'[' | b'{') => self.parts += 1,
                _ => {}
            }
        }
    }
}

impl Write for JsonCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_has_the_same_weight_as_its_json_text() {
        for value in [json!({}), json!([1, "a,[{\\\" b", {"c": [null, true]}]), json!("[[[[")] {
            let text = value.to_string();
            assert_eq!(json_weight_of(&value), json_weight(text.as_bytes()) as u64, "{text}");
        }
        assert_eq!(json_part_count(b"\"[[[[\""), 1, "a string has one part");
        assert_eq!(json_weight(b"[{},{}]"), 7 + 5 * PART_BYTES);
    }
}
