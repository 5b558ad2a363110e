//! Redaction of secrets in results, logs and streams.
//!
//! A text is decoded once from each [`Encoding`], and an automaton searches the decoded text for all secrets at once. The time is
//! linear in the length of the text, and does not depend on the number of secrets.

mod automaton;
mod encoding;
mod escape;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use self::automaton::Automaton;
use self::encoding::{EncodedSearch, Encoding};
use toolwit_core::Arguments;

/// The text that replaces a secret.
const REPLACEMENT: &str = "[redacted]";

/// The minimum length of a text to search for, in bytes. Shorter texts occur too often by chance. The secrets of calls are longer,
/// because `grants::authority` refuses values of fewer than 8 bytes.
const PATTERN_BYTES_MIN: usize = 4;

/// Finds and replaces the secrets of a call: plain, with any characters escaped as in a URL, JSON, a programming language or
/// HTML, in hex, and in base64. Also finds a secret in the middle of longer encoded text.
#[derive(Default)]
pub(crate) struct Redactor {
    secrets: Automaton,
}

impl Redactor {
    /// Creates the redactor of some secrets. Ignores secrets that are shorter than [`PATTERN_BYTES_MIN`].
    pub(crate) fn new<'a>(secrets: impl Iterator<Item = &'a str> + Clone) -> Self {
        let long_secrets = secrets.filter(|secret| secret.len() >= PATTERN_BYTES_MIN);
        Self {
            secrets: Automaton::new(long_secrets.map(str::as_bytes)),
        }
    }

    /// Returns whether there are no secrets to search for.
    pub(crate) fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Returns whether a text contains a secret.
    pub(crate) fn finds_in(&self, text: &str) -> bool {
        !self.find(text.as_bytes()).is_empty()
    }

    /// Replaces every secret in a text.
    pub(crate) fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let ranges = self.find(text.as_bytes());
        if ranges.is_empty() {
            return Cow::Borrowed(text);
        }
        let bytes = text.as_bytes();
        let mut clean = Vec::with_capacity(bytes.len());
        let mut copied_to = 0;
        for range in ranges {
            clean.extend_from_slice(&bytes[copied_to..range.start]);
            clean.extend_from_slice(REPLACEMENT.as_bytes());
            copied_to = range.end;
        }
        clean.extend_from_slice(&bytes[copied_to..]);
        Cow::Owned(String::from_utf8_lossy(&clean).into_owned())
    }

    /// Removes, from the end of a truncated text, the part that could be the beginning of a secret.
    pub(crate) fn without_cut_secret<'a>(&self, text: &'a str) -> &'a str {
        if self.is_empty() {
            return text;
        }
        let undecided_from = |encoding| {
            let mut search = EncodedSearch::new(encoding);
            search.search_piece(&self.secrets, text.as_bytes(), 0, &mut |_| {});
            search.undecided_from().map(as_index)
        };
        let end = Encoding::ALL.into_iter().filter_map(undecided_from).min();
        &text[..text.floor_char_boundary(end.unwrap_or(text.len()))]
    }

    /// Replaces every secret in the strings, numbers and keys of a value. A number that contains a secret becomes a string.
    pub(crate) fn redact_value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.redact_text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| self.redact_value(field));
                if fields.keys().any(|key| self.finds_in(key)) {
                    *fields = std::mem::take(fields)
                        .into_iter()
                        .map(|(key, field)| (self.redact_text(&key).into_owned(), field))
                        .collect();
                }
            }
            Value::Number(number) => {
                if self.finds_in(&number.to_string()) {
                    *value = Value::String(REPLACEMENT.to_owned());
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Replaces every secret in the values and keys of arguments.
    pub(crate) fn redact_arguments(&self, arguments: Arguments) -> Arguments {
        let mut value = Value::Object(arguments);
        self.redact_value(&mut value);
        match value {
            Value::Object(arguments) => arguments,
            _ => Arguments::new(),
        }
    }

    /// Overwrites every secret in place with asterisks. The length of the text does not change, so that it still matches a
    /// `content-length` header.
    pub(crate) fn mask(&self, bytes: &mut [u8]) {
        for range in self.find(bytes) {
            bytes[range].fill(b'*');
        }
    }

    /// Returns the ranges of all secrets, in order and without overlaps.
    fn find(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        if self.is_empty() {
            return ranges;
        }
        for encoding in Encoding::ALL {
            let mut search = EncodedSearch::new(encoding);
            let mut report = |range: Range<u64>| add_range(&mut ranges, as_index(range.start)..as_index(range.end));
            search.search_piece(&self.secrets, bytes, 0, &mut report);
            search.end(&self.secrets, &mut report);
        }
        ranges.sort_unstable_by_key(|range| range.start);
        let mut merged = Vec::with_capacity(ranges.len());
        for range in ranges {
            add_range(&mut merged, range);
        }
        merged
    }
}

/// Adds a range. If it overlaps the last range, extends the last range instead.
fn add_range(ranges: &mut Vec<Range<usize>>, range: Range<usize>) {
    match ranges.last_mut() {
        Some(last) if range.start < last.end && last.start < range.end => {
            *last = last.start.min(range.start)..last.end.max(range.end);
        }
        _ => ranges.push(range),
    }
}

fn as_index(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

/// Masks secrets in a stream, including those that are split between chunks. Buffers only the bytes at the end that could be the
/// beginning of a secret: at most as many bytes as the longest encoding of a secret has.
#[derive(Default)]
pub(crate) struct StreamMask {
    /// The search in each encoding. Empty before the first chunk.
    searches: Vec<EncodedSearch>,
    buffer: BytesMut,
    /// The position of the first byte of the buffer in the stream.
    buffer_start: u64,
}

impl StreamMask {
    /// Adds a chunk to the buffer, and returns the bytes that can be passed on. Masks the secrets in these bytes.
    pub(crate) fn push(&mut self, redactor: &Redactor, chunk: Bytes) -> Bytes {
        if redactor.is_empty() {
            return chunk;
        }
        if self.searches.is_empty() {
            self.searches.extend(Encoding::ALL.map(EncodedSearch::new));
        }
        let chunk_start = self.buffer_start + self.buffer.len() as u64;
        self.buffer.extend_from_slice(&chunk);
        let end = self.buffer_start + self.buffer.len() as u64;
        let mut undecided_from = end;
        for search in &mut self.searches {
            let buffer = &mut self.buffer;
            let mut mask = |range: Range<u64>| {
                buffer[as_index(range.start - self.buffer_start)..as_index(range.end - self.buffer_start)].fill(b'*');
            };
            search.search_piece(&redactor.secrets, &chunk, chunk_start, &mut mask);
            undecided_from = undecided_from.min(search.undecided_from().unwrap_or(end));
        }
        let passed_on = self.buffer.split_to(as_index(undecided_from - self.buffer_start));
        self.buffer_start = undecided_from;
        passed_on.freeze()
    }

    /// Ends the stream: masks the secrets in the buffered bytes, and returns these bytes.
    pub(crate) fn finish(&mut self, redactor: &Redactor) -> Bytes {
        let buffer = &mut self.buffer;
        let mut mask = |range: Range<u64>| {
            buffer[as_index(range.start - self.buffer_start)..as_index(range.end - self.buffer_start)].fill(b'*');
        };
        for search in &mut self.searches {
            search.end(&redactor.secrets, &mut mask);
        }
        self.buffer.split().freeze()
    }
}
