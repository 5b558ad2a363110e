//! The encodings in which a secret is recognized, and their decoders.

use std::collections::VecDeque;
use std::ops::Range;

use super::automaton::{Automaton, SearchState};
use super::escape::{EscapeDecoder, EscapeKind};

/// The maximum number of line break characters that are skipped between two digits of base64: a carriage return and a
/// line feed.
const LINE_BREAK_BYTES_MAX: u8 = 2;

/// An encoding of text or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    /// Some characters are replaced by escapes.
    Escaped(EscapeKind),
    /// Hex digits. The first byte begins after the first `skipped` digits of a run of digits.
    Hex {
        skipped: u8,
    },
    /// Base64 of either alphabet. The first byte begins after the first `skipped` digits of a run of digits.
    Base64 {
        skipped: u8,
    },
}

impl Encoding {
    pub(super) const ALL: [Self; 11] = [
        Self::Plain,
        Self::Escaped(EscapeKind::Percent),
        Self::Escaped(EscapeKind::Form),
        Self::Escaped(EscapeKind::Backslash),
        Self::Escaped(EscapeKind::Entity),
        Self::Hex { skipped: 0 },
        Self::Hex { skipped: 1 },
        Self::Base64 { skipped: 0 },
        Self::Base64 { skipped: 1 },
        Self::Base64 { skipped: 2 },
        Self::Base64 { skipped: 3 },
    ];
}

/// Decodes a text from one encoding, and searches the decoded bytes for secrets. The text can come in pieces.
pub(super) struct Reader {
    decoder: Decoder,
    search: SecretSearch,
}

enum Decoder {
    Plain,
    Escaped(EscapeDecoder),
    Digits(DigitDecoder),
}

impl Reader {
    pub(super) fn new(encoding: Encoding) -> Self {
        let decoder = match encoding {
            Encoding::Plain => Decoder::Plain,
            Encoding::Escaped(kind) => Decoder::Escaped(EscapeDecoder::new(kind)),
            Encoding::Hex { skipped } => Decoder::Digits(DigitDecoder::new(4, skipped)),
            Encoding::Base64 { skipped } => Decoder::Digits(DigitDecoder::new(6, skipped)),
        };
        Self {
            decoder,
            search: SecretSearch::default(),
        }
    }

    /// Reads a piece of the text that begins at the position `start`. Reports the range of each secret that ends in
    /// this piece.
    pub(super) fn read(&mut self, secrets: &Automaton, piece: &[u8], start: u64, on_found: &mut dyn FnMut(Range<u64>)) {
        let search = &mut self.search;
        match &mut self.decoder {
            Decoder::Plain => {
                for (position, byte) in (start..).zip(piece) {
                    search.accept(secrets, *byte, position..position + 1, on_found);
                }
            }
            Decoder::Escaped(escape) => {
                for (position, byte) in (start..).zip(piece) {
                    escape.read(*byte, position, &mut |byte, range| {
                        search.accept(secrets, byte, range, on_found)
                    });
                }
            }
            Decoder::Digits(digits) => {
                for (position, byte) in (start..).zip(piece) {
                    match digits.read(*byte, position) {
                        DigitProgress::Incomplete => {}
                        DigitProgress::Decoded(byte, range) => search.accept(secrets, byte, range, on_found),
                        DigitProgress::NotADigit => search.reset(),
                    }
                }
            }
        }
    }

    /// Ends the text. An escape that is not complete is read as plain text.
    pub(super) fn end(&mut self, secrets: &Automaton, on_found: &mut dyn FnMut(Range<u64>)) {
        let search = &mut self.search;
        if let Decoder::Escaped(escape) = &mut self.decoder {
            escape.end(&mut |byte, range| search.accept(secrets, byte, range, on_found));
        }
    }

    /// Returns the first position of a part at the end of the text that could be the beginning of a secret. Returns `None` if
    /// there is no such part.
    pub(super) fn undecided_from(&self) -> Option<u64> {
        let pending = match &self.decoder {
            Decoder::Plain => None,
            Decoder::Escaped(escape) => escape.pending_start(),
            Decoder::Digits(digits) => digits.pending_start(),
        };
        self.search.starts.front().copied().or(pending)
    }
}

/// The search in decoded text.
#[derive(Default)]
struct SecretSearch {
    state: SearchState,
    /// The position in the text of each decoded byte that belongs to the beginning of a possible secret.
    starts: VecDeque<u64>,
}

impl SecretSearch {
    /// Continues the search with a decoded byte. `range` is the part of the text that encodes the byte. Reports the range of the
    /// longest secret that ends with the byte.
    fn accept(&mut self, secrets: &Automaton, byte: u8, range: Range<u64>, on_found: &mut dyn FnMut(Range<u64>)) {
        self.state = secrets.step(self.state, byte);
        let depth = secrets.depth(self.state);
        if depth == 0 {
            self.starts.clear();
            return;
        }
        self.starts.push_back(range.start);
        while self.starts.len() > depth {
            self.starts.pop_front();
        }
        // The length of the longest secret that ends here.
        let length = secrets.matched_length(self.state);
        let secret_start = length
            .checked_sub(1)
            .and_then(|index| self.starts.iter().rev().nth(index));
        if let Some(start) = secret_start {
            on_found(*start..range.end);
        }
    }

    fn reset(&mut self) {
        self.state = SearchState::default();
        self.starts.clear();
    }
}

/// A decoder of digits that encode 4 or 6 bits each.
struct DigitDecoder {
    bits_per_digit: u32,
    /// The number of digits to skip at the beginning of each run.
    skipped: u8,
    /// The number of digits that are still to be skipped in this run.
    to_skip: u8,
    /// The decoded bits that do not complete a byte yet.
    bits: u32,
    bit_count: u32,
    /// The position of the last digit.
    last_position: u64,
    /// The number of line break characters since the last digit.
    line_break_bytes: u8,
}

/// The outcome of reading one byte as a digit.
enum DigitProgress {
    /// The digit does not complete a byte.
    Incomplete,
    /// The digit completes this byte.
    Decoded(u8, Range<u64>),
    /// The byte is not a digit, so a run of digits ends.
    NotADigit,
}

impl DigitDecoder {
    fn new(bits_per_digit: u32, skipped: u8) -> Self {
        Self {
            bits_per_digit,
            skipped,
            to_skip: skipped,
            bits: 0,
            bit_count: 0,
            last_position: 0,
            line_break_bytes: 0,
        }
    }

    fn read(&mut self, byte: u8, position: u64) -> DigitProgress {
        let is_hex = self.bits_per_digit == 4;
        let value = if is_hex { hex_digit(byte) } else { base64_digit(byte) };
        let Some(value) = value else {
            // A line of base64 ends after a complete byte.
            let is_line_break = !is_hex && self.bit_count == 0 && matches!(byte, b'\r' | b'\n');
            if is_line_break && self.line_break_bytes < LINE_BREAK_BYTES_MAX {
                self.line_break_bytes += 1;
                return DigitProgress::Incomplete;
            }
            *self = Self::new(self.bits_per_digit, self.skipped);
            return DigitProgress::NotADigit;
        };
        self.line_break_bytes = 0;
        if self.to_skip > 0 {
            self.to_skip -= 1;
            return DigitProgress::Incomplete;
        }
        let start = if self.bit_count > 0 {
            self.last_position
        } else {
            position
        };
        self.last_position = position;
        self.bits = (self.bits << self.bits_per_digit) | u32::from(value);
        self.bit_count += self.bits_per_digit;
        let Some(extra_bits) = self.bit_count.checked_sub(8) else {
            return DigitProgress::Incomplete;
        };
        let decoded = (self.bits >> extra_bits).to_be_bytes()[3];
        self.bit_count = extra_bits;
        self.bits &= (1 << extra_bits) - 1;
        DigitProgress::Decoded(decoded, start..position + 1)
    }

    /// Returns the position of the first digit of an incomplete byte, or `None` if no byte is incomplete.
    fn pending_start(&self) -> Option<u64> {
        (self.bit_count > 0).then_some(self.last_position)
    }
}

/// Returns the value of a hex digit.
pub(super) fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

fn base64_digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}
