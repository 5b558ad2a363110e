#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const SECRET: &str = "s3cr3t/\"key\" +&<ä😀";

/// The maximum number of bytes of an encoded secret that may remain: the quotes around it, or the padding of base64.
const REMAINING_BYTES_MAX: usize = 4;

fn redactor() -> Redactor {
    Redactor::new([SECRET].into_iter())
}

/// Encodes each byte of a text with `encode`, which receives its index and the byte.
fn encode_bytes(text: &str, encode: impl Fn(usize, u8) -> String) -> String {
    text.bytes()
        .enumerate()
        .map(|(index, byte)| encode(index, byte))
        .collect()
}

/// Encodes each character of a text with `encode`, which receives its index and the character.
fn encode_characters(text: &str, encode: impl Fn(usize, char) -> String) -> String {
    text.chars()
        .enumerate()
        .map(|(index, character)| encode(index, character))
        .collect()
}

fn percent_escape(byte: u8, is_uppercase: bool) -> String {
    if is_uppercase {
        format!("%{byte:02X}")
    } else {
        format!("%{byte:02x}")
    }
}

/// Percent-encodes a text, as `quote` of Python and `encodeURIComponent` of JavaScript do. ASCII letters, digits and the
/// characters in `safe` stay as they are.
fn percent_encode(text: &str, safe: &str) -> String {
    encode_bytes(text, |_, byte| {
        let character = char::from(byte);
        if character.is_ascii_alphanumeric() || safe.contains(character) {
            character.to_string()
        } else {
            percent_escape(byte, true)
        }
    })
}

fn utf16_escape(character: char) -> String {
    let units = character.encode_utf16(&mut [0; 2]).to_vec();
    units.into_iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

/// Returns the secret in every supported encoding.
///
/// Some encodings have two forms of a character: plain or escaped, a named or a numeric escape, lower-case or upper-case hex digits.
/// `has_second_form` receives the index of the character or byte, and returns whether to use the second form.
fn encodings(has_second_form: impl Fn(usize) -> bool) -> Vec<String> {
    let has_second_form = &has_second_form;
    let hex = encode_bytes(SECRET, |_, byte| format!("{byte:02x}"));
    vec![
        SECRET.to_owned(),
        json!(SECRET).to_string(),
        json!(SECRET).to_string().replace('/', "\\/"),
        format!("{SECRET:?}"),
        SECRET.escape_unicode().to_string(),
        percent_encode(SECRET, "/-_.~"),
        percent_encode(SECRET, "-_.~!'()*"),
        percent_encode(SECRET, "-_.~ ").replace(' ', "+"),
        encode_bytes(SECRET, |index, byte| percent_escape(byte, has_second_form(index))),
        encode_characters(SECRET, |index, character| {
            if character.is_ascii() && !has_second_form(index) {
                return character.to_string();
            }
            encode_bytes(&character.to_string(), |index, byte| {
                percent_escape(byte, has_second_form(index))
            })
        }),
        encode_characters(SECRET, |index, character| match character {
            '"' | '\\' => format!("\\{character}"),
            _ if has_second_form(index) => utf16_escape(character),
            _ => character.to_string(),
        }),
        encode_characters(SECRET, |index, character| match character {
            '"' | '&' | '<' if has_second_form(index) => format!("&#{};", u32::from(character)),
            '"' => "&quot;".to_owned(),
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            _ if has_second_form(index) => format!("&#x{:x};", u32::from(character)),
            _ => character.to_string(),
        }),
        encode_bytes(SECRET, |_, byte| format!("\\x{byte:02x}")),
        encode_bytes(SECRET, |_, byte| format!("\\{byte:03o}")),
        hex.to_ascii_uppercase(),
        encode_characters(&hex, |index, digit| {
            let digit = if has_second_form(index) {
                digit.to_ascii_uppercase()
            } else {
                digit
            };
            digit.to_string()
        }),
        STANDARD.encode(SECRET),
        URL_SAFE.encode(SECRET),
    ]
}

/// Passes a text through a [`StreamMask`] in chunks, which end at the positions in `chunk_ends` and at the end of the text.
fn mask_in_chunks(text: &str, mut chunk_ends: Vec<usize>) -> String {
    let redactor = redactor();
    chunk_ends.sort_unstable();
    let (mut mask, mut masked, mut start) = (StreamMask::default(), Vec::new(), 0);
    for end in chunk_ends
        .into_iter()
        .map(|end| end.min(text.len()))
        .chain([text.len()])
    {
        masked.extend_from_slice(&mask.push(&redactor, Bytes::copy_from_slice(&text.as_bytes()[start..end])));
        start = end;
    }
    masked.extend_from_slice(&mask.finish(&redactor));
    assert_eq!(masked.len(), text.len(), "the length is unchanged");
    String::from_utf8(masked).unwrap()
}

// attack: K4
#[test]
fn a_secret_is_found_in_every_supported_encoding() {
    for text in encodings(|index| index % 3 == 0) {
        let redacted = redactor().redact_text(&format!("before, {text}, after")).into_owned();
        assert!(
            redacted.starts_with("before, ") && redacted.ends_with(", after") && redacted.contains(REPLACEMENT),
            "{text}: {redacted}"
        );
        assert!(
            redacted.len() <= "before, , after".len() + REPLACEMENT.len() + REMAINING_BYTES_MAX,
            "{redacted}"
        );
    }
    assert_eq!(redactor().redact_text("nothing here"), "nothing here");
    let base64 = STANDARD.encode(SECRET.repeat(5));
    let base64_lines: Vec<_> = base64.as_bytes().chunks(76).map(String::from_utf8_lossy).collect();
    let redacted = redactor().redact_text(&base64_lines.join("\r\n")).into_owned();
    assert!(
        redacted.replace(REPLACEMENT, "").len() <= REMAINING_BYTES_MAX,
        "base64 in lines: {redacted}"
    );
}

#[test]
fn secrets_in_values_and_keys_are_replaced() {
    let redactor = Redactor::new([SECRET, "1234567890"].into_iter());
    let mut value = json!({"a": [SECRET, 1, 1_234_567_890], SECRET: "b"});
    redactor.redact_value(&mut value);
    assert_eq!(value, json!({"a": [REPLACEMENT, 1, REPLACEMENT], REPLACEMENT: "b"}));
}

#[test]
fn overlapping_and_adjacent_secrets_are_replaced() {
    let redactor = Redactor::new(["hunter2hunter3", "hunter3more", "abc"].into_iter());
    let redacted = redactor
        .redact_text("hunter2hunter3more hunter2hunter3hunter2hunter3 abc")
        .into_owned();
    assert_eq!(
        redacted, "[redacted] [redacted][redacted] abc",
        "three bytes are too few to search for"
    );
}

// attack: K4
#[test]
fn text_that_cannot_begin_a_secret_is_passed_on_at_once() {
    let redactor = redactor();
    let mut mask = StreamMask::default();
    let mut push = |text: &str| mask.push(&redactor, Bytes::copy_from_slice(text.as_bytes()));
    assert_eq!(push("data: one\n\n"), "data: one\n\n");
    assert_eq!(push("data: s3cr3t/"), "data: ", "the beginning of a secret is buffered");
    assert_eq!(push("\n\n"), "s3cr3t/\n\n");
    // The search in base64 skips at most two line break characters in a row, so the mask does not buffer these 10,000.
    let line_breaks = format!("A{}", "\n".repeat(10_000));
    assert!(push(&line_breaks).len() > 9_000);
}

proptest! {
    // `before` contains no character that begins an escape.
    // attack: K4
    #[test]
    fn a_secret_is_masked_in_every_encoding_and_across_chunk_borders(
        before in "[ -$'-\\[\\]-~]{0,7}",
        after in "[ -~]{0,7}",
        chunk_ends in proptest::collection::vec(0_usize..200, 0..8),
        second_forms in any::<u64>(),
    ) {
        for text in encodings(|index| second_forms >> (index % 64) & 1 == 1) {
            let masked = mask_in_chunks(&format!("{before} {text} {after}"), chunk_ends.clone());
            let secret_start = before.len() + 1;
            let unmasked_count = masked[secret_start..].bytes().zip(text.bytes()).filter(|(a, b)| a == b && *a != b'*').count();
            prop_assert!(unmasked_count <= REMAINING_BYTES_MAX, "{} of {}: {}", unmasked_count, text, masked);
        }
    }

    #[test]
    fn a_secret_inside_longer_encoded_text_is_found(
        before in "[ -~]{0,7}",
        after in "[ -~]{0,7}",
        chunk_ends in proptest::collection::vec(0_usize..80, 0..8),
    ) {
        let text = format!("{before}{SECRET}{after}");
        let is_redacted = |text: &str| {
            redactor().redact_text(text).contains(REPLACEMENT) && mask_in_chunks(text, chunk_ends.clone()).contains("********")
        };
        for encoded in [
            STANDARD_NO_PAD.encode(&text),
            URL_SAFE_NO_PAD.encode(&text),
            encode_bytes(&text, |_, byte| format!("{byte:02x}")),
            percent_encode(&text, ""),
            json!(text).to_string(),
        ] {
            prop_assert!(is_redacted(&encoded), "{}", encoded);
            prop_assert!(is_redacted(&format!("x{encoded}")), "with `x` in front: {}", encoded);
        }
    }

    #[test]
    fn text_without_a_secret_is_unchanged(
        text in "[ -~\n\u{e4}]{0,200}",
        chunk_ends in proptest::collection::vec(0_usize..200, 0..8),
    ) {
        prop_assert_eq!(redactor().redact_text(&text), text.as_str());
        prop_assert_eq!(mask_in_chunks(&text, chunk_ends), text);
    }
}
