//! Redaction of secrets in results, logs and streams.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::{Bytes, BytesMut};
use serde_json::Value;
use zeroize::Zeroizing;

use toolwit_core::Arguments;

/// The text that replaces a secret.
const MARK: &str = "[redacted]";

/// The minimum length of a text to search for, in bytes. Shorter texts would match too often.
const NEEDLE_BYTES_MIN: usize = 4;

/// Finds the secrets of a call in their usual forms: plain, escaped for JSON or a URL, in hex, and in base64, also in the middle
/// of longer text.
#[derive(Default)]
pub(crate) struct Redactor {
    /// The forms to search for, longest first, so that a form that contains another is redacted completely.
    needles: Vec<Zeroizing<Vec<u8>>>,
}

impl Redactor {
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut needles: Vec<Zeroizing<Vec<u8>>> = secrets
            .into_iter()
            .filter(|secret| secret.len() >= NEEDLE_BYTES_MIN)
            .flat_map(forms)
            .filter(|form| form.len() >= NEEDLE_BYTES_MIN)
            .map(Zeroizing::new)
            .collect();
        needles.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        needles.dedup();
        Self { needles }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.needles.is_empty()
    }

    /// Replaces every secret in a text.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let bytes = text.as_bytes();
        let Some(first) = self.find(bytes, 0) else {
            return Cow::Borrowed(text);
        };
        let mut clean = Vec::with_capacity(bytes.len());
        let (mut at, mut found) = (0, Some(first));
        while let Some((start, end)) = found {
            clean.extend_from_slice(&bytes[at..start]);
            clean.extend_from_slice(MARK.as_bytes());
            at = end;
            found = self.find(bytes, at);
        }
        clean.extend_from_slice(&bytes[at..]);
        Cow::Owned(String::from_utf8_lossy(&clean).into_owned())
    }

    /// Replaces every secret in the strings and keys of a value.
    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| self.value(field));
                if fields.keys().any(|key| self.find(key.as_bytes(), 0).is_some()) {
                    *fields = std::mem::take(fields)
                        .into_iter()
                        .map(|(key, field)| (self.text(&key).into_owned(), field))
                        .collect();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Replaces every secret in the strings and keys of arguments.
    pub(crate) fn fields(&self, arguments: Arguments) -> Arguments {
        let mut value = Value::Object(arguments);
        self.value(&mut value);
        match value {
            Value::Object(arguments) => arguments,
            _ => Arguments::new(),
        }
    }

    /// Overwrites every secret in place, so that the length still matches the `content-length` header.
    pub(crate) fn mask(&self, bytes: &mut [u8]) {
        let mut at = 0;
        while let Some((start, end)) = self.find(bytes, at) {
            bytes[start..end].fill(b'*');
            at = end;
        }
    }

    /// Finds the next secret at or after an offset. Prefers the longest form.
    fn find(&self, bytes: &[u8], from: usize) -> Option<(usize, usize)> {
        let next = |needle: &Zeroizing<Vec<u8>>| {
            let start = bytes
                .get(from..)?
                .windows(needle.len())
                .position(|window| window == needle.as_slice())?;
            Some((from + start, from + start + needle.len()))
        };
        self.needles
            .iter()
            .filter_map(next)
            .min_by_key(|(start, end)| (*start, usize::MAX - end))
    }

    /// Returns the number of trailing bytes that could be the beginning of a secret.
    fn partial_secret_bytes(&self, bytes: &[u8]) -> usize {
        let longest = |needle: &Zeroizing<Vec<u8>>| {
            (1..needle.len().min(bytes.len() + 1))
                .rev()
                .find(|length| bytes.ends_with(&needle[..*length]))
                .unwrap_or(0)
        };
        self.needles.iter().map(longest).max().unwrap_or(0)
    }
}

/// Masks secrets in a stream, including those that are split between two chunks. Buffers only bytes that could be the beginning
/// of a secret.
#[derive(Default)]
pub(crate) struct StreamMask {
    buffer: BytesMut,
}

impl StreamMask {
    /// Takes a chunk and returns the bytes that can be passed on.
    pub(crate) fn push(&mut self, redactor: &Redactor, chunk: Bytes) -> Bytes {
        if redactor.is_idle() {
            return chunk;
        }
        self.buffer.extend_from_slice(&chunk);
        redactor.mask(&mut self.buffer);
        let ready = self.buffer.len() - redactor.partial_secret_bytes(&self.buffer);
        self.buffer.split_to(ready).freeze()
    }

    /// Returns the buffered bytes at the end of the stream.
    pub(crate) fn finish(&mut self) -> Bytes {
        self.buffer.split().freeze()
    }
}

fn forms(secret: &str) -> Vec<Vec<u8>> {
    let bytes = secret.as_bytes();
    let json = Value::String(secret.to_owned()).to_string();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![
        bytes.to_vec(),
        json.as_bytes()[1..json.len() - 1].to_vec(),
        json.replace('/', "\\/").as_bytes()[1..].to_vec(),
        percent(bytes, "%20", false).into_bytes(),
        percent(bytes, "%20", true).into_bytes(),
        percent(bytes, "+", false).into_bytes(),
        hex.to_ascii_uppercase().into_bytes(),
        hex.into_bytes(),
    ];
    if let Some(escaped) = forms.get_mut(2) {
        escaped.pop();
    }
    // The base64 form of a text depends on its offset modulo 3. Characters that also encode neighbouring bytes are left out.
    for before in 0..3_usize {
        let mut padded = vec![0; before];
        padded.extend_from_slice(bytes);
        let skipped = (before * 8).div_ceil(6);
        let complete = padded.len() * 8 / 6;
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            forms.push(encoded.as_bytes()[skipped..complete].to_vec());
        }
    }
    forms
}

fn percent(bytes: &[u8], space: &str, lower: bool) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b' ' => text.push_str(space),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(char::from(*byte)),
            byte if lower => text.push_str(&format!("%{byte:02x}")),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const SECRET: &str = "s3cr3t/\"key\" +ä";

    #[test]
    fn a_secret_is_found_in_every_usual_form() {
        let redactor = Redactor::new([SECRET]);
        let basic = STANDARD.encode(format!("user:{SECRET}"));
        let url = percent(format!("a={SECRET}&b").as_bytes(), "+", false);
        for text in [SECRET.to_owned(), json!({"a": SECRET}).to_string(), basic, url] {
            let text = format!("before {text} after");
            let redacted = redactor.text(&text);
            assert!(
                redacted.contains(MARK) && redacted.starts_with("before ") && redacted.ends_with(" after"),
                "{redacted}"
            );
        }
        let mut value = json!({"a": [SECRET, 1], SECRET: "b"});
        redactor.value(&mut value);
        assert_eq!(value, json!({"a": [MARK, 1], MARK: "b"}));
        assert_eq!(redactor.text("nothing here"), "nothing here");
    }

    proptest! {
        #[test]
        fn a_secret_split_into_chunks_is_masked(cuts in proptest::collection::vec(0_usize..60, 0..8)) {
            let redactor = Redactor::new(["hunter2hunter3"]);
            let text = "a hunter2hunter3 b hunter2hunter hunter2hunter3hunter2hunter3!";
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            cuts.push(text.len());
            let (mut mask, mut clean, mut at) = (StreamMask::default(), Vec::new(), 0);
            for cut in cuts {
                clean.extend_from_slice(&mask.push(&redactor, Bytes::copy_from_slice(&text.as_bytes()[at..cut])));
                at = cut;
            }
            clean.extend_from_slice(&mask.finish());
            prop_assert_eq!(String::from_utf8(clean).unwrap(), text.replace("hunter2hunter3", "**************"));
        }

        #[test]
        fn a_secret_inside_longer_base64_is_found(before in "[ -~]{0,7}", after in "[ -~]{0,7}") {
            let redactor = Redactor::new(["hunter2hunter3"]);
            let encoded = STANDARD.encode(format!("{before}hunter2hunter3{after}"));
            prop_assert!(redactor.text(&encoded).contains(MARK), "{}", encoded);
        }
    }
}
