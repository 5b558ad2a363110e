//! Paths that every server interprets in the same way.
//!
//! A server may convert a path before it resolves dot segments: it may decode the standard escapes, decode other escapes, decode
//! twice, or replace a character by a similar one of another character set. So a path is plain only if none of these conversions
//! adds a separator or a dot segment.

/// Characters that some servers convert to text with dots or [`SYNTAX_CHARACTERS`]: those that Unicode replaces by such text in
/// the normalization form NFKC, and others that look like a slash or a backslash.
const LOOKALIKES: [char; 26] = [
    '\u{37e}', '\u{2024}', '\u{2025}', '\u{2026}', '\u{2044}', '\u{2100}', '\u{2101}', '\u{2105}', '\u{2106}',
    '\u{2215}', '\u{2216}', '\u{29f5}', '\u{29f8}', '\u{29f9}', '\u{fe14}', '\u{fe19}', '\u{fe30}', '\u{fe52}',
    '\u{fe54}', '\u{fe68}', '\u{fe6a}', '\u{ff05}', '\u{ff0e}', '\u{ff0f}', '\u{ff1b}', '\u{ff3c}',
];

/// Characters that separate segments or parameters, or begin an escape, on some servers.
const SYNTAX_CHARACTERS: [char; 4] = ['/', '\\', ';', '%'];

/// Returns whether every server interprets a path in the same way. The path must start with `/`.
///
/// After its escapes are decoded, such a path has no empty segment except the last one, no segment of dots and spaces only, no
/// character of [`SYNTAX_CHARACTERS`] or [`LOOKALIKES`] in a segment, no control character, and no invalid UTF-8.
pub(super) fn is_plain_path(path: &str) -> bool {
    let segments: Vec<&str> = path.split('/').collect();
    // The first segment is empty because the path starts with `/`. The last one is empty if the path ends with `/`.
    let inner_segments = segments.get(1..segments.len().saturating_sub(1)).unwrap_or_default();
    !inner_segments.contains(&"") && segments.iter().all(|segment| is_plain_segment(segment))
}

fn is_plain_segment(segment: &str) -> bool {
    let Some(decoded) = decode_escapes(segment) else {
        return false;
    };
    let is_ambiguous = |character: char| {
        character.is_control() || SYNTAX_CHARACTERS.contains(&character) || LOOKALIKES.contains(&character)
    };
    // Some servers ignore spaces and dots at the end of a name, so a segment of dots and spaces could be a dot segment.
    let has_only_dots_and_spaces = !decoded.is_empty()
        && decoded
            .chars()
            .all(|character| character == '.' || character.is_whitespace());
    !has_only_dots_and_spaces && !decoded.contains(is_ambiguous)
}

/// Decodes the percent escapes of a segment. Returns `None` for an escape that is not two hex digits, and for bytes that are
/// not UTF-8.
fn decode_escapes(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut remaining = segment.bytes();
    while let Some(byte) = remaining.next() {
        bytes.push(if byte == b'%' {
            let digits = [char::from(remaining.next()?), char::from(remaining.next()?)];
            let [high, low] = digits.map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok()));
            high? * 16 + low?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // attack: K7
    #[test]
    fn a_path_that_a_server_could_decode_to_another_path_is_not_plain() {
        for plain in [
            "/",
            "/v1",
            "/v1/",
            "/v1/a.b/..c/~d:e@f",
            "/v1/a%20b",
            "/v1/caf%C3%A9",
            "/v1/%E6%97%A5",
            "/a/b..",
            "/.well-known/x",
        ] {
            assert!(is_plain_path(plain), "{plain}");
        }
        for ambiguous in [
            "/v1/%u002e%u002e/x",
            "/v1/%c0%ae%c0%ae/x",
            "/v1/%e0%80%ae/x",
            "/v1/.%09./x",
            "/v1/..%09/x",
            "/v1/..%20/x",
            "/v1/...%20./x",
            "/v1/%2e%2E/x",
            "/v1/./x",
            "/v1/a%2fb",
            "/v1/a%5Cb",
            "/v1/a%00b",
            "/v1/a%0d%0ab",
            "/v1/a%7fb",
            "/v1/a%3bb",
            "/v1/a;b",
            "/v1/a\\b",
            "/v1/%252e",
            "/v1/a%",
            "/v1/a%2",
            "/v1/a%zz",
            "/v1/a%+1",
            "/v1/%ae%ae/x",
            "/v1/%ff",
            "/v1/%c2%85",
            "/v1/%ef%bc%8e%ef%bc%8e/x",
            "/v1/a%ef%bc%8fb",
            "/v1/a%e2%88%95b",
            "/v1/%ef%bc%852e%ef%bc%852e/x",
            "/v1/a%cd%beb",
            "/v1/%e2%84%80",
            "/v1/a%e2%80%a4b",
            "/v1//a",
            "//v1",
            "/v1//",
        ] {
            assert!(!is_plain_path(ambiguous), "{ambiguous}");
        }
    }
}
