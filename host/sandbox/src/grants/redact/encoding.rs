//! The encodings in which a secret is recognized, and their decoders.

use std::collections::VecDeque;
use std::ops::Range;

use super::automaton::{Automaton, SearchState};
use super::escape::{EscapeDecoder, EscapeSyntax};

/// The maximum number of line break characters that are skipped between two digits of base64. A line break has at most two: a
/// carriage return and a line feed.
const LINE_BREAK_BYTES_MAX: u8 = 2;

/// An encoding of text or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    /// Some characters are replaced by escapes.
    Escaped(EscapeSyntax),
    /// Hex digits. The first byte begins after the first `skipped` digits of a sequence of digits.
    Hex {
        skipped: u8,
    },
    /// Base64 of the standard or the URL-safe alphabet. The first byte begins after the first `skipped` digits of a sequence of
    /// digits.
    Base64 {
        skipped: u8,
    },
}

impl Encoding {
    pub(super) const ALL: [Self; 11] = [
        Self::Plain,
        Self::Escaped(EscapeSyntax::Percent),
        Self::Escaped(EscapeSyntax::Form),
        Self::Escaped(EscapeSyntax::Backslash),
        Self::Escaped(EscapeSyntax::Entity),
        Self::Hex { skipped: 0 },
        Self::Hex { skipped: 1 },
        Self::Base64 { skipped: 0 },
        Self::Base64 { skipped: 1 },
        Self::Base64 { skipped: 2 },
        Self::Base64 { skipped: 3 },
    ];
}

/// A search for secrets in a text of one encoding. The text is decoded first, and can come in pieces.
pub(super) struct EncodedSearch {
    decoder: Decoder,
    decoded_search: DecodedSearch,
}

enum Decoder {
    Plain,
    Escaped(EscapeDecoder),
    Digits(DigitDecoder),
}

impl EncodedSearch {
    pub(super) fn new(encoding: Encoding) -> Self {
        let decoder = match encoding {
            Encoding::Plain => Decoder::Plain,
            Encoding::Escaped(syntax) => Decoder::Escaped(EscapeDecoder::new(syntax)),
            Encoding::Hex { skipped } => Decoder::Digits(DigitDecoder::new(4, skipped)),
            Encoding::Base64 { skipped } => Decoder::Digits(DigitDecoder::new(6, skipped)),
        };
        Self {
            decoder,
            decoded_search: DecodedSearch::default(),
        }
    }

    /// Searches a piece of the text that begins at the position `start`. Calls `on_found` with the range of each secret that ends
    /// in this piece.
    pub(super) fn search_piece(
        &mut self,
        secrets: &Automaton,
        piece: &[u8],
        start: u64,
        on_found: &mut dyn FnMut(Range<u64>),
    ) {
        let search = &mut self.decoded_search;
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

    /// Ends the text. Reads an incomplete escape as plain text, and calls `on_found` with the range of each secret that then ends.
    pub(super) fn end(&mut self, secrets: &Automaton, on_found: &mut dyn FnMut(Range<u64>)) {
        let search = &mut self.decoded_search;
        if let Decoder::Escaped(escape) = &mut self.decoder {
            escape.end(&mut |byte, range| search.accept(secrets, byte, range, on_found));
        }
    }

    /// Returns the position of the first byte that could belong to an incomplete secret at the end of the text. Returns `None` if
    /// no secret can be incomplete there.
    pub(super) fn undecided_from(&self) -> Option<u64> {
        let pending = match &self.decoder {
            Decoder::Plain => None,
            Decoder::Escaped(escape) => escape.pending_start(),
            Decoder::Digits(digits) => digits.pending_start(),
        };
        self.decoded_search.starts.front().copied().or(pending)
    }
}

/// A search for secrets in decoded bytes.
#[derive(Default)]
struct DecodedSearch {
    state: SearchState,
    /// For each decoded byte of the possible secret at the end of the text: the position in the text where its encoding begins.
    starts: VecDeque<u64>,
}

impl DecodedSearch {
    /// Continues the search with a decoded byte. `range` is the part of the text that encodes the byte. Calls `on_found` with the
    /// range of the longest secret that ends with the byte, if there is one.
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
        let secret_length = secrets.matched_length(self.state);
        let secret_start = secret_length
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
    /// The number of digits to skip at the beginning of each sequence.
    skipped: u8,
    /// The number of digits that remain to be skipped in this sequence.
    remaining_skips: u8,
    /// The decoded bits that do not complete a byte yet.
    bits: u32,
    /// The number of valid bits in `bits`.
    bit_count: u32,
    /// The position of the last digit that was decoded.
    last_position: u64,
    /// The number of line break characters since the last digit.
    line_break_bytes: u8,
}

/// The result of reading one byte as a digit.
enum DigitProgress {
    /// The byte is skipped, or is a digit that does not complete a byte.
    Incomplete,
    /// The digit completes this byte, which is encoded in this range of the text.
    Decoded(u8, Range<u64>),
    /// The byte is not a digit, so a sequence of digits ends.
    NotADigit,
}

impl DigitDecoder {
    fn new(bits_per_digit: u32, skipped: u8) -> Self {
        Self {
            bits_per_digit,
            skipped,
            remaining_skips: skipped,
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
            // Base64 in lines breaks a line only after a complete byte.
            let is_line_break = !is_hex && self.bit_count == 0 && matches!(byte, b'\r' | b'\n');
            if is_line_break && self.line_break_bytes < LINE_BREAK_BYTES_MAX {
                self.line_break_bytes += 1;
                return DigitProgress::Incomplete;
            }
            *self = Self::new(self.bits_per_digit, self.skipped);
            return DigitProgress::NotADigit;
        };
        self.line_break_bytes = 0;
        if self.remaining_skips > 0 {
            self.remaining_skips -= 1;
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
