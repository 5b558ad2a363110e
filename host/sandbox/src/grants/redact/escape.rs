//! Decoding of escapes in text: those of URLs, of JSON and programming languages, and of HTML.

use std::ops::Range;

use super::encoding::hex_digit;

/// The maximum length of an escape, in bytes.
const ESCAPE_BYTES_MAX: usize = 12;

/// The named HTML entities that are decoded, each with its ASCII character.
const ENTITIES: [(&str, u8); 5] = [
    ("&amp;", b'&'),
    ("&apos;", b'\''),
    ("&gt;", b'>'),
    ("&lt;", b'<'),
    ("&quot;", b'"'),
];

/// A syntax of escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EscapeSyntax {
    /// `%41` as in URLs, and `%u0041` as the JavaScript function `escape` writes.
    Percent,
    /// As [`Percent`](Self::Percent), with `+` for a space, as in HTML forms.
    Form,
    /// `\"`, `\u0041`, `\u{41}`, `\U00000041`, `\x41`, `\101`, as in JSON, JavaScript, Python, C and Rust.
    Backslash,
    /// `&amp;`, `&#65;`, `&#x41;`, as in HTML and XML.
    Entity,
}

/// The result of reading the bytes of a possible escape.
enum EscapeProgress {
    /// The bytes are the beginning of a possible escape.
    Incomplete,
    /// The bytes are an escape of this byte.
    Byte(u8),
    /// The bytes are an escape of this character.
    Character(char),
    /// The bytes are not an escape, and not the beginning of one.
    NotAnEscape,
}

/// A decoder of text in which any characters may be escaped.
pub(super) struct EscapeDecoder {
    syntax: EscapeSyntax,
    /// The beginning of a possible escape.
    pending: [u8; ESCAPE_BYTES_MAX],
    pending_length: usize,
    /// The position of the first pending byte.
    pending_start: u64,
}

impl EscapeDecoder {
    pub(super) fn new(syntax: EscapeSyntax) -> Self {
        Self {
            syntax,
            pending: [0; ESCAPE_BYTES_MAX],
            pending_length: 0,
            pending_start: 0,
        }
    }

    /// Returns the position at which an incomplete escape begins, or `None` if no escape has begun.
    pub(super) fn pending_start(&self) -> Option<u64> {
        (self.pending_length > 0).then_some(self.pending_start)
    }

    /// Reads a byte. If bytes can then be decoded, calls `on_decoded` with each decoded byte, and with the range of the text that
    /// encodes the byte.
    pub(super) fn read(&mut self, byte: u8, position: u64, on_decoded: &mut dyn FnMut(u8, Range<u64>)) {
        if self.pending_length == 0 {
            if byte == self.syntax.mark() {
                self.pending_start = position;
                self.push(byte);
            } else {
                on_decoded(self.syntax.decode_plain(byte), position..position + 1);
            }
            return;
        }
        self.push(byte);
        let range = self.pending_start..position + 1;
        match self.syntax.parse_escape(&self.pending[..self.pending_length]) {
            EscapeProgress::Incomplete if self.pending_length < ESCAPE_BYTES_MAX => {}
            EscapeProgress::Incomplete | EscapeProgress::NotAnEscape => self.read_as_plain(on_decoded),
            EscapeProgress::Byte(byte) => {
                self.pending_length = 0;
                on_decoded(byte, range);
            }
            EscapeProgress::Character(character) => {
                self.pending_length = 0;
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    on_decoded(byte, range.clone());
                }
            }
        }
    }

    /// Ends the text. Reads an incomplete escape as plain text.
    pub(super) fn end(&mut self, on_decoded: &mut dyn FnMut(u8, Range<u64>)) {
        while self.pending_length > 0 {
            self.read_as_plain(on_decoded);
        }
    }

    /// Reads the first pending byte as plain text, and reads the other pending bytes again.
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

impl EscapeSyntax {
    /// Returns the mark: the byte with which each escape begins.
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
    fn parse_escape(self, text: &[u8]) -> EscapeProgress {
        match self {
            Self::Percent | Self::Form => parse_percent(&text[1..]),
            Self::Backslash => parse_backslash(&text[1..]),
            Self::Entity => parse_entity(text),
        }
    }
}

fn parse_percent(text: &[u8]) -> EscapeProgress {
    match text {
        [b'u' | b'U', digits @ ..] => parse_character(digits, 4),
        digits => parse_byte(digits),
    }
}

fn parse_backslash(text: &[u8]) -> EscapeProgress {
    match text {
        [b'u', b'{'] => EscapeProgress::Incomplete,
        [b'u', b'{', digits @ .., b'}'] => character_of(hex_number(digits)),
        [b'u', b'{', digits @ ..] if hex_number(digits).is_some() => EscapeProgress::Incomplete,
        // Two escapes of a surrogate pair, for one character above U+FFFF.
        [b'u', high @ ..] if high.len() >= 4 && hex_number(&high[..4]).is_some_and(is_high_surrogate) => {
            parse_surrogates(high)
        }
        [b'u', digits @ ..] => parse_character(digits, 4),
        [b'U', digits @ ..] => parse_character(digits, 8),
        [b'x', digits @ ..] => parse_byte(digits),
        [b'0'..=b'3'] | [b'0'..=b'3', b'0'..=b'7'] => EscapeProgress::Incomplete,
        [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7'] => {
            EscapeProgress::Byte((high - b'0') * 64 + (middle - b'0') * 8 + (low - b'0'))
        }
        [b'n'] => EscapeProgress::Byte(b'\n'),
        [b'r'] => EscapeProgress::Byte(b'\r'),
        [b't'] => EscapeProgress::Byte(b'\t'),
        [b'b'] => EscapeProgress::Byte(8),
        [b'f'] => EscapeProgress::Byte(12),
        [escaped] => EscapeProgress::Byte(*escaped),
        _ => EscapeProgress::NotAnEscape,
    }
}

fn parse_entity(text: &[u8]) -> EscapeProgress {
    let digits_and_radix = match text {
        [b'&', b'#', b'x' | b'X', digits @ ..] => Some((digits, 16)),
        [b'&', b'#', digits @ ..] => Some((digits, 10)),
        _ => None,
    };
    let Some((digits, radix)) = digits_and_radix else {
        let mut matching = ENTITIES.iter().filter(|(name, _)| name.as_bytes().starts_with(text));
        return match matching.next() {
            Some((name, byte)) if name.len() == text.len() => EscapeProgress::Byte(*byte),
            Some(_) => EscapeProgress::Incomplete,
            None => EscapeProgress::NotAnEscape,
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
        None if is_complete || !digits.is_empty() => EscapeProgress::NotAnEscape,
        _ => EscapeProgress::Incomplete,
    }
}

/// Parses a byte from exactly two hex digits.
fn parse_byte(digits: &[u8]) -> EscapeProgress {
    match digits {
        [] => EscapeProgress::Incomplete,
        [high] if hex_digit(*high).is_some() => EscapeProgress::Incomplete,
        [high, low] => match (hex_digit(*high), hex_digit(*low)) {
            (Some(high), Some(low)) => EscapeProgress::Byte(high * 16 + low),
            _ => EscapeProgress::NotAnEscape,
        },
        _ => EscapeProgress::NotAnEscape,
    }
}

/// Parses a character from its number, which has exactly `length` hex digits.
fn parse_character(digits: &[u8], length: usize) -> EscapeProgress {
    match hex_number(digits) {
        number @ Some(_) if digits.len() == length => character_of(number),
        Some(_) => EscapeProgress::Incomplete,
        None if digits.is_empty() => EscapeProgress::Incomplete,
        None => EscapeProgress::NotAnEscape,
    }
}

/// Parses the four digits of a high surrogate, and then the escape of a low surrogate.
fn parse_surrogates(text: &[u8]) -> EscapeProgress {
    let (high_digits, second_escape) = text.split_at(4);
    match second_escape {
        [] | [b'\\'] | [b'\\', b'u'] => EscapeProgress::Incomplete,
        [b'\\', b'u', low_digits @ ..] => match (hex_number(high_digits), hex_number(low_digits)) {
            (Some(high), Some(low)) if low_digits.len() == 4 => {
                let pair = [high, low].map(|unit| u16::try_from(unit).unwrap_or_default());
                match char::decode_utf16(pair).next() {
                    Some(Ok(character)) => EscapeProgress::Character(character),
                    _ => EscapeProgress::NotAnEscape,
                }
            }
            (_, Some(_)) => EscapeProgress::Incomplete,
            _ => EscapeProgress::NotAnEscape,
        },
        _ => EscapeProgress::NotAnEscape,
    }
}

fn is_high_surrogate(unit: u32) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

/// Returns the number that hex digits denote. Returns `None` if there are no digits, or other characters.
fn hex_number(digits: &[u8]) -> Option<u32> {
    let digit = |number: u32, byte: &u8| Some(number.checked_mul(16)? + u32::from(hex_digit(*byte)?));
    (!digits.is_empty()).then(|| digits.iter().try_fold(0, digit)).flatten()
}

/// Returns the character with this number, or [`EscapeProgress::NotAnEscape`] if there is no such character.
fn character_of(number: Option<u32>) -> EscapeProgress {
    number
        .and_then(char::from_u32)
        .map_or(EscapeProgress::NotAnEscape, EscapeProgress::Character)
}
