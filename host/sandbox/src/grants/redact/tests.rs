#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const SECRET: &str = "s3cr3t/\"key\" +&<ä😀";

fn redactor() -> Redactor {
    Redactor::new([SECRET].into_iter())
}

/// Writes a text with each byte as `write` returns it.
fn bytes(text: &str, write: impl Fn(usize, u8) -> String) -> String {
    text.bytes().enumerate().map(|(at, byte)| write(at, byte)).collect()
}

/// Writes a text with each character as `write` returns it.
fn characters(text: &str, write: impl Fn(usize, char) -> String) -> String {
    text.chars()
        .enumerate()
        .map(|(at, character)| write(at, character))
        .collect()
}

fn percent(byte: u8, upper: bool) -> String {
    if upper {
        format!("%{byte:02X}")
    } else {
        format!("%{byte:02x}")
    }
}

/// As the functions `quote` of Python and `encodeURIComponent` of JavaScript, with other characters left as they are.
fn quoted(text: &str, safe: &str) -> String {
    bytes(text, |_, byte| {
        let character = char::from(byte);
        if character.is_ascii_alphanumeric() || safe.contains(character) {
            character.to_string()
        } else {
            percent(byte, true)
        }
    })
}

fn utf16(character: char) -> String {
    let units = character.encode_utf16(&mut [0; 2]).to_vec();
    units.into_iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

/// The secret in every supported encoding, except in the middle of longer text. `pick` selects the characters that are escaped
/// where an encoding leaves a choice.
fn encodings(pick: impl Fn(usize) -> bool) -> Vec<String> {
    let pick = &pick;
    let hex = bytes(SECRET, |_, byte| format!("{byte:02x}"));
    vec![
        SECRET.to_owned(),
        json!(SECRET).to_string(),
        json!(SECRET).to_string().replace('/', "\\/"),
        format!("{SECRET:?}"),
        SECRET.escape_unicode().to_string(),
        quoted(SECRET, "/-_.~"),
        quoted(SECRET, "-_.~!'()*"),
        quoted(SECRET, "-_.~ ").replace(' ', "+"),
        bytes(SECRET, |at, byte| percent(byte, pick(at))),
        characters(SECRET, |at, character| {
            if character.is_ascii() && !pick(at) {
                return character.to_string();
            }
            bytes(&character.to_string(), |at, byte| percent(byte, pick(at)))
        }),
        characters(SECRET, |at, character| match character {
            '"' | '\\' => format!("\\{character}"),
            _ if pick(at) => utf16(character),
            _ => character.to_string(),
        }),
        characters(SECRET, |at, character| match character {
            '"' | '&' | '<' if pick(at) => format!("&#{};", u32::from(character)),
            '"' => "&quot;".to_owned(),
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            _ if pick(at) => format!("&#x{:x};", u32::from(character)),
            _ => character.to_string(),
        }),
        bytes(SECRET, |_, byte| format!("\\x{byte:02x}")),
        bytes(SECRET, |_, byte| format!("\\{byte:03o}")),
        hex.to_ascii_uppercase(),
        characters(&hex, |at, digit| {
            if pick(at) { digit.to_ascii_uppercase() } else { digit }.to_string()
        }),
        STANDARD.encode(SECRET),
        URL_SAFE.encode(SECRET),
    ]
}

/// Streams a text through a mask in pieces that end at the given positions.
fn streamed(text: &str, mut cuts: Vec<usize>) -> String {
    let redactor = redactor();
    cuts.sort_unstable();
    let (mut mask, mut clean, mut at) = (StreamMask::default(), Vec::new(), 0);
    for cut in cuts.into_iter().map(|cut| cut.min(text.len())).chain([text.len()]) {
        clean.extend_from_slice(&mask.push(&redactor, Bytes::copy_from_slice(&text.as_bytes()[at..cut])));
        at = cut;
    }
    clean.extend_from_slice(&mask.finish(&redactor));
    assert_eq!(clean.len(), text.len(), "the length is unchanged");
    String::from_utf8(clean).unwrap()
}

// attack: K4
#[test]
fn a_secret_is_found_in_every_supported_encoding() {
    for text in encodings(|at| at % 3 == 0) {
        let redacted = redactor().text(&format!("before, {text}, after")).into_owned();
        assert!(
            redacted.starts_with("before, ") && redacted.ends_with(", after") && redacted.contains(REPLACEMENT),
            "{text}: {redacted}"
        );
        assert!(
            redacted.len() <= "before, , after".len() + REPLACEMENT.len() + 4,
            "{redacted}"
        );
    }
    assert_eq!(redactor().text("nothing here"), "nothing here");
    let broken = STANDARD.encode(SECRET.repeat(5));
    let broken: Vec<_> = broken.as_bytes().chunks(76).map(String::from_utf8_lossy).collect();
    let redacted = redactor().text(&broken.join("\r\n")).into_owned();
    assert!(
        redacted.replace(REPLACEMENT, "").len() <= 4,
        "base64 in lines: {redacted}"
    );
}

#[test]
fn secrets_in_values_and_keys_are_replaced() {
    let redactor = Redactor::new([SECRET, "1234567890"].into_iter());
    let mut value = json!({"a": [SECRET, 1, 1_234_567_890], SECRET: "b"});
    redactor.value(&mut value);
    assert_eq!(value, json!({"a": [REPLACEMENT, 1, REPLACEMENT], REPLACEMENT: "b"}));
}

#[test]
fn overlapping_and_adjacent_secrets_are_replaced() {
    let redactor = Redactor::new(["hunter2hunter3", "hunter3more", "abc"].into_iter());
    let redacted = redactor
        .text("hunter2hunter3more hunter2hunter3hunter2hunter3 abc")
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
    assert_eq!(push("data: s3cr3t/"), "data: ", "the beginning of the secret");
    assert_eq!(push("\n\n"), "s3cr3t/\n\n");
    // Base64 skips few line breaks, so that a sender cannot make the mask buffer many.
    let breaks = format!("A{}", "\n".repeat(10_000));
    assert!(push(&breaks).len() > 9_000);
}

proptest! {
    // attack: K4
    #[test]
    fn a_secret_leaves_in_no_encoding_and_at_no_chunk_border(
        before in "[ -$'-\\[\\]-~]{0,7}",
        after in "[ -~]{0,7}",
        cuts in proptest::collection::vec(0_usize..200, 0..8),
        escaped in any::<u64>(),
    ) {
        for text in encodings(|at| escaped >> (at % 64) & 1 == 1) {
            let masked = streamed(&format!("{before} {text} {after}"), cuts.clone());
            let position = before.len() + 1;
            let kept = masked[position..].bytes().zip(text.bytes()).filter(|(a, b)| a == b && *a != b'*').count();
            prop_assert!(kept <= 4, "{} of {}: {}", kept, text, masked);
        }
    }

    #[test]
    fn a_secret_inside_longer_encoded_text_is_found(
        before in "[ -~]{0,7}",
        after in "[ -~]{0,7}",
        cuts in proptest::collection::vec(0_usize..80, 0..8),
    ) {
        let text = format!("{before}{SECRET}{after}");
        let found = |text: &str| {
            redactor().text(text).contains(REPLACEMENT) && streamed(text, cuts.clone()).contains("********")
        };
        for encoded in [
            STANDARD_NO_PAD.encode(&text),
            URL_SAFE_NO_PAD.encode(&text),
            bytes(&text, |_, byte| format!("{byte:02x}")),
            quoted(&text, ""),
            json!(text).to_string(),
        ] {
            prop_assert!(found(&encoded), "{}", encoded);
            prop_assert!(found(&format!("x{encoded}")), "after another digit: {}", encoded);
        }
    }

    #[test]
    fn text_without_a_secret_is_unchanged(text in "[ -~\n\u{e4}]{0,200}", cuts in proptest::collection::vec(0_usize..200, 0..8)) {
        prop_assert_eq!(redactor().text(&text), text.as_str());
        prop_assert_eq!(streamed(&text, cuts), text);
    }
}
