//! Escapes in text: of URLs, of JSON and programming languages, and of HTML.

use std::ops::Range;

use super::encoding::hex_digit;

/// The maximum length of an escape, in bytes.
const ESCAPE_BYTES_MAX: usize = 12;

/// The named HTML escapes that are decoded. All are of ASCII characters.
const ENTITIES: [(&str, u8); 5] = [
    ("&amp;", b'&'),
    ("&apos;", b'\''),
    ("&gt;", b'>'),
    ("&lt;", b'<'),
    ("&quot;", b'"'),
];

/// A syntax of escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EscapeKind {
    /// `%41`, and `%u0041` as in old JavaScript.
    Percent,
    /// As [`Percent`](Self::Percent), with `+` for a space.
    Form,
    /// `\"`, `\u0041`, `\u{41}`, `\U00000041`, `\x41`, `\101`, as in JSON, JavaScript, Python, C and Rust.
    Backslash,
    /// `&amp;`, `&#65;`, `&#x41;`, as in HTML and XML.
    Entity,
}

/// The result of reading the bytes of a possible escape.
enum Progress {
    /// The beginning of an escape.
    Incomplete,
    /// An escape of this byte.
    Byte(u8),
    /// An escape of this character.
    Character(char),
    /// Not an escape.
    NotAnEscape,
}

/// A decoder of text in which any characters may be escaped.
pub(super) struct EscapeDecoder {
    kind: EscapeKind,
    /// The beginning of a possible escape.
    pending: [u8; ESCAPE_BYTES_MAX],
    pending_length: usize,
    /// The position of the first pending byte.
    pending_start: u64,
}

impl EscapeDecoder {
    pub(super) fn new(kind: EscapeKind) -> Self {
        Self {
            kind,
            pending: [0; ESCAPE_BYTES_MAX],
            pending_length: 0,
            pending_start: 0,
        }
    }

    /// Returns the position at which an incomplete escape begins, or `None` if no escape has begun.
    pub(super) fn pending_start(&self) -> Option<u64> {
        (self.pending_length > 0).then_some(self.pending_start)
    }

    /// Reads a byte. Calls `on_decoded` with each byte that can then be decoded, and with the range of the text that encodes
    /// it.
    pub(super) fn read(&mut self, byte: u8, position: u64, on_decoded: &mut dyn FnMut(u8, Range<u64>)) {
        if self.pending_length == 0 {
            if byte == self.kind.mark() {
                self.pending_start = position;
                self.push(byte);
            } else {
                on_decoded(self.kind.decode_plain(byte), position..position + 1);
            }
            return;
        }
        self.push(byte);
        let range = self.pending_start..position + 1;
        match self.kind.parse_escape(&self.pending[..self.pending_length]) {
            Progress::Incomplete if self.pending_length < ESCAPE_BYTES_MAX => {}
            Progress::Incomplete | Progress::NotAnEscape => self.read_as_plain(on_decoded),
            Progress::Byte(byte) => {
                self.pending_length = 0;
                on_decoded(byte, range);
            }
            Progress::Character(character) => {
                self.pending_length = 0;
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    on_decoded(byte, range.clone());
                }
            }
        }
    }

    /// Ends the text. An escape that is not complete is plain text.
    pub(super) fn end(&mut self, on_decoded: &mut dyn FnMut(u8, Range<u64>)) {
        while self.pending_length > 0 {
            self.read_as_plain(on_decoded);
        }
    }

    /// Passes on the first pending byte as plain text, and reads the others again.
    fn read_as_plain(&mut self, on_decoded: &mut dyn FnMut(u8, Range<u64>)) {
        let (pending, count, start) = (self.pending, self.pending_length, self.pending_start);
        self.pending_length = 0;
        on_decoded(pending[0], start..start + 1);
        for (position, byte) in (start + 1..).zip(&pending[1..count]) {
            self.read(*byte, position, on_decoded);
        }
    }

    fn push(&mut self, byte: u8) {
        self.pending[self.pending_length] = byte;
        self.pending_length += 1;
    }
}

impl EscapeKind {
    /// Returns the mark, with which each escape begins.
    fn mark(self) -> u8 {
        match self {
            Self::Percent | Self::Form => b'%',
            Self::Backslash => b'\\',
            Self::Entity => b'&',
        }
    }

    /// Decodes a byte that does not begin an escape.
    fn decode_plain(self, byte: u8) -> u8 {
        if self == Self::Form && byte == b'+' { b' ' } else { byte }
    }

    /// Parses a possible escape, which begins with the mark.
    fn parse_escape(self, text: &[u8]) -> Progress {
        match self {
            Self::Percent | Self::Form => parse_percent(&text[1..]),
            Self::Backslash => parse_backslash(&text[1..]),
            Self::Entity => parse_entity(text),
        }
    }
}

fn parse_percent(text: &[u8]) -> Progress {
    match text {
        [b'u' | b'U', digits @ ..] => parse_character(digits, 4),
        digits => parse_byte(digits),
    }
}

fn parse_backslash(text: &[u8]) -> Progress {
    match text {
        [b'u', b'{'] => Progress::Incomplete,
        [b'u', b'{', digits @ .., b'}'] => character_of(hex_number(digits)),
        [b'u', b'{', digits @ ..] if hex_number(digits).is_some() => Progress::Incomplete,
        // A surrogate pair: two escapes for one character above U+FFFF.
        [b'u', high @ ..] if high.len() >= 4 && hex_number(&high[..4]).is_some_and(is_high_surrogate) => {
            parse_surrogates(high)
        }
        [b'u', digits @ ..] => parse_character(digits, 4),
        [b'U', digits @ ..] => parse_character(digits, 8),
        [b'x', digits @ ..] => parse_byte(digits),
        [b'0'..=b'3'] | [b'0'..=b'3', b'0'..=b'7'] => Progress::Incomplete,
        [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7'] => {
            Progress::Byte((high - b'0') * 64 + (middle - b'0') * 8 + (low - b'0'))
        }
        [b'n'] => Progress::Byte(b'\n'),
        [b'r'] => Progress::Byte(b'\r'),
        [b't'] => Progress::Byte(b'\t'),
        [b'b'] => Progress::Byte(8),
        [b'f'] => Progress::Byte(12),
        [escaped] => Progress::Byte(*escaped),
        _ => Progress::NotAnEscape,
    }
}

fn parse_entity(text: &[u8]) -> Progress {
    let number = match text {
        [b'&', b'#', b'x' | b'X', digits @ ..] => Some((digits, 16)),
        [b'&', b'#', digits @ ..] => Some((digits, 10)),
        _ => None,
    };
    let Some((digits, radix)) = number else {
        let mut matching = ENTITIES.iter().filter(|(name, _)| name.as_bytes().starts_with(text));
        return match matching.next() {
            Some((name, byte)) if name.len() == text.len() => Progress::Byte(*byte),
            Some(_) => Progress::Incomplete,
            None => Progress::NotAnEscape,
        };
    };
    let (digits, is_complete) = match digits {
        [digits @ .., b';'] => (digits, true),
        digits => (digits, false),
    };
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| u32::from_str_radix(digits, radix).ok());
    match number {
        Some(number) if is_complete => character_of(Some(number)),
        None if is_complete || !digits.is_empty() => Progress::NotAnEscape,
        _ => Progress::Incomplete,
    }
}

/// Parses a byte of exactly two hex digits.
fn parse_byte(digits: &[u8]) -> Progress {
    match digits {
        [] => Progress::Incomplete,
        [high] if hex_digit(*high).is_some() => Progress::Incomplete,
        [high, low] => match (hex_digit(*high), hex_digit(*low)) {
            (Some(high), Some(low)) => Progress::Byte(high * 16 + low),
            _ => Progress::NotAnEscape,
        },
        _ => Progress::NotAnEscape,
    }
}

/// Parses a character whose number has exactly `length` hex digits.
fn parse_character(digits: &[u8], length: usize) -> Progress {
    match hex_number(digits) {
        number @ Some(_) if digits.len() == length => character_of(number),
        Some(_) => Progress::Incomplete,
        None if digits.is_empty() => Progress::Incomplete,
        None => Progress::NotAnEscape,
    }
}

/// Parses the four digits of a high surrogate, and then the escape of a low surrogate.
fn parse_surrogates(text: &[u8]) -> Progress {
    let (high, low) = text.split_at(4);
    match low {
        [] | [b'\\'] | [b'\\', b'u'] => Progress::Incomplete,
        [b'\\', b'u', digits @ ..] => match (hex_number(high), hex_number(digits)) {
            (Some(high), Some(low)) if digits.len() == 4 => {
                let pair = [high, low].map(|unit| u16::try_from(unit).unwrap_or_default());
                match char::decode_utf16(pair).next() {
                    Some(Ok(character)) => Progress::Character(character),
                    _ => Progress::NotAnEscape,
                }
            }
            (_, Some(_)) => Progress::Incomplete,
            _ => Progress::NotAnEscape,
        },
        _ => Progress::NotAnEscape,
    }
}

fn is_high_surrogate(unit: u32) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

/// Returns the number that hex digits denote. Returns `None` without digits, and for other characters.
fn hex_number(digits: &[u8]) -> Option<u32> {
    let digit = |number: u32, byte: &u8| Some(number.checked_mul(16)? + u32::from(hex_digit(*byte)?));
    (!digits.is_empty()).then(|| digits.iter().try_fold(0, digit)).flatten()
}

/// Returns the character with this number, or [`Progress::NotAnEscape`] if there is no such character.
fn character_of(number: Option<u32>) -> Progress {
    number
        .and_then(char::from_u32)
        .map_or(Progress::NotAnEscape, Progress::Character)
}
