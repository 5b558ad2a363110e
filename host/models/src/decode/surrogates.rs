//! Replaces the escapes of lone surrogates in JSON text, which no JSON parser of Rust accepts.

use std::borrow::Cow;

/// The escape of the replacement character. It has the length of the escape that it replaces.
const REPLACEMENT: &str = "\\ufffd";

/// The length of an escape of the form `\uXXXX`, in bytes.
const ESCAPE_BYTES: usize = 6;

/// Returns a JSON text in which the replacement character U+FFFD stands for each surrogate that is not part of a pair. A model or
/// server that cuts a text within a character sends such surrogates; without them, the text is valid JSON.
pub(crate) fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut replaced = String::new();
    let (mut copied, mut position) = (0, 0);
    while position < bytes.len() {
        if bytes[position] != b'\\' {
            position += 1;
            continue;
        }
        match surrogate_at(bytes, position) {
            // The character after another escape can be a second backslash, which starts no escape.
            None => position += 2,
            Some(Surrogate::High) if matches!(surrogate_at(bytes, position + ESCAPE_BYTES), Some(Surrogate::Low)) => {
                position += 2 * ESCAPE_BYTES;
            }
            Some(_) => {
                replaced.push_str(&text[copied..position]);
                replaced.push_str(REPLACEMENT);
                position += ESCAPE_BYTES;
                copied = position;
            }
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    replaced.push_str(&text[copied..]);
    Cow::Owned(replaced)
}

/// The half of a surrogate pair.
enum Surrogate {
    High,
    Low,
}

/// Returns the surrogate whose escape starts at a position, if there is one.
fn surrogate_at(bytes: &[u8], position: usize) -> Option<Surrogate> {
    let escape = bytes.get(position..position + ESCAPE_BYTES)?;
    let digits = std::str::from_utf8(escape.strip_prefix(b"\\u")?).ok()?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xD800..=0xDBFF => Some(Surrogate::High),
        0xDC00..=0xDFFF => Some(Surrogate::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_and_escaped_backslashes_stay() {
        let cases = [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""a\uDE00b\ud83d""#, r#""a\ufffdb\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ud83d\n\ude00""#, r#""\ufffd\n\ufffd""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\ud8"#, r#""\ud8"#),
            ("é\\", "é\\"),
        ];
        for (text, expected) in cases {
            assert_eq!(without_lone_surrogates(text), expected, "{text}");
        }
    }
}
