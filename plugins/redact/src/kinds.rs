//! The kinds of data, and where they are in a text.

use std::ops::Range;

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An address of electronic mail.
    Email,
    /// The number of a payment card.
    Card,
    /// An international bank account number.
    Iban,
    /// A key, a token or a private key.
    Credential,
}

/// The beginnings of keys and tokens, and the minimum length of the rest.
const KEY_PREFIXES: [(&str, usize); 16] = [
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("npm_", 30),
    ("eyJ", 30),
];

const KEY_BEGIN: &str = "-----BEGIN ";
const KEY_END: &str = "-----END ";
const KEY_NAME: &str = "PRIVATE KEY-----";

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Email, Self::Card, Self::Iban, Self::Credential];

    /// Returns the name of the kind.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Card => "card",
            Self::Iban => "iban",
            Self::Credential => "credential",
        }
    }

    /// Returns the kind with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Finds the data of this kind in a text. The ranges are in order and do not overlap.
    #[must_use]
    pub fn find(self, text: &str) -> Vec<Range<usize>> {
        match self {
            Self::Email => emails(text),
            Self::Card => runs(
                text,
                |byte| byte.is_ascii_digit(),
                |digits| (13..=19).contains(&digits.len()) && is_luhn(digits),
            ),
            Self::Iban => runs(text, |byte| byte.is_ascii_alphanumeric(), is_iban),
            Self::Credential => credentials(text),
        }
    }
}

fn emails(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let is_local = |byte: u8| byte.is_ascii_alphanumeric() || b"._%+-".contains(&byte) || byte >= 0x80;
    let is_domain = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte) || byte >= 0x80;
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for at in (0..bytes.len()).filter(|at| bytes[*at] == b'@') {
        let start_min = ranges.last().map_or(0, |last| last.end);
        let start = (start_min..at)
            .rev()
            .take_while(|before| is_local(bytes[*before]))
            .last();
        let end = (at + 1..bytes.len())
            .take_while(|after| is_domain(bytes[*after]))
            .last();
        let (Some(start), Some(end)) = (start, end) else {
            continue;
        };
        let domain = text[at + 1..=end].trim_end_matches(['.', '-']);
        if domain.contains('.') && domain.len() >= 4 {
            ranges.push(start..at + 1 + domain.len());
        }
    }
    ranges
}

/// Finds the longest runs of characters for which `is_kind` is true. Single spaces and dashes between the characters are
/// ignored. A run begins and ends at a border of words.
fn runs(text: &str, is_part: impl Fn(u8) -> bool, is_kind: impl Fn(&[u8]) -> bool) -> Vec<Range<usize>> {
    /// Longer runs are not numbers. The limit keeps the search linear.
    const CHARACTERS_MAX: usize = 40;
    let bytes = text.as_bytes();
    let is_word = |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric());
    let (mut ranges, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let is_border = at == 0 || !is_word(at - 1);
        if !is_border || !is_part(bytes[at]) {
            at += 1;
            continue;
        }
        let (mut characters, mut end, mut longest) = (Vec::new(), at, None);
        while characters.len() <= CHARACTERS_MAX {
            match bytes.get(end) {
                Some(byte) if is_part(*byte) => characters.push(byte.to_ascii_uppercase()),
                Some(b' ' | b'-') if bytes.get(end + 1).is_some_and(|next| is_part(*next)) => {}
                _ => break,
            }
            end += 1;
            if !is_word(end) && is_kind(&characters) {
                longest = Some(end);
            }
        }
        match longest {
            Some(end) => {
                ranges.push(at..end);
                at = end;
            }
            None => at += 1,
        }
    }
    ranges
}

/// Returns whether digits have the check digit of payment cards.
fn is_luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let digit = u32::from(digit - b'0');
            match at % 2 {
                0 => digit,
                _ if digit > 4 => 2 * digit - 9,
                _ => 2 * digit,
            }
        })
        .sum();
    sum.is_multiple_of(10) && digits.iter().any(|digit| *digit != b'0')
}

/// Returns whether text without spaces is an account number with valid check digits.
fn is_iban(text: &[u8]) -> bool {
    let is_form = (15..=34).contains(&text.len())
        && text[..2].iter().all(u8::is_ascii_alphabetic)
        && text[2..4].iter().all(u8::is_ascii_digit);
    if !is_form {
        return false;
    }
    let rotated = text[4..].iter().chain(&text[..4]);
    let rest = rotated.fold(0_u32, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        letter => (rest * 100 + u32::from(letter - b'A') + 10) % 97,
    });
    rest == 1
}

fn credentials(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let (mut ranges, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(KEY_BEGIN.as_bytes())
            && let Some(end) = private_key_end(&text[at..])
        {
            ranges.push(at..at + end);
            at += end;
            continue;
        }
        let is_border = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        let key = KEY_PREFIXES
            .iter()
            .find(|(prefix, _)| is_border && rest.starts_with(prefix.as_bytes()));
        if let Some((prefix, more)) = key {
            let length = rest.iter().take_while(|byte| is_key(**byte)).count();
            if length >= prefix.len() + more {
                ranges.push(at..at + length);
                at += length;
                continue;
            }
        }
        at += 1;
    }
    ranges
}

/// Returns the end of a private key in PEM, or of the text if it has no end.
fn private_key_end(text: &str) -> Option<usize> {
    /// The maximum length of the name of a key, so that the search stays linear.
    const NAME_BYTES_MAX: usize = 64;
    let mut head = text.len().min(KEY_BEGIN.len() + NAME_BYTES_MAX);
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let begin = text[..head].find(KEY_NAME)?;
    let body = begin + KEY_NAME.len();
    let Some(end) = text[body..].find(KEY_END) else {
        return Some(text.len());
    };
    let end = body + end;
    let closing = text[end..].find(KEY_NAME).map(|at| end + at + KEY_NAME.len());
    Some(closing.unwrap_or(text.len()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn ranges(kind: Kind, text: &str) -> Vec<&str> {
        kind.find(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn addresses_are_found() {
        let text = "Write to <ann.lee+x@mail.example.com>, bob@b.de. Not @here, a@b or x@.";
        assert_eq!(ranges(Kind::Email, text), ["ann.lee+x@mail.example.com", "bob@b.de"]);
        assert_eq!(ranges(Kind::Email, "jürgen@müller.de@x.example"), ["jürgen@müller.de"]);
    }

    #[test]
    fn only_numbers_with_valid_check_digits_are_found() {
        let text = "4111 1111 1111 1111, 4111-1111-1111-1112 and 378282246310005; order 1234567890123";
        assert_eq!(ranges(Kind::Card, text), ["4111 1111 1111 1111", "378282246310005"]);
        assert!(
            ranges(
                Kind::Card,
                "x4111111111111111 41111111111111111111111111 0000000000000000"
            )
            .is_empty()
        );
        let text = "DE89 3704 0044 0532 0130 00 or gb82west12345698765432, not DE89370400440532013001";
        assert_eq!(
            ranges(Kind::Iban, text),
            ["DE89 3704 0044 0532 0130 00", "gb82west12345698765432"]
        );
    }

    #[test]
    fn credentials_are_found() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----";
        let text =
            format!("key=sk-abcdefghijklmnopqrstuvwx, AKIAIOSFODNN7EXAMPLE {key}; sk-short, task-list-of-many-words");
        assert_eq!(
            ranges(Kind::Credential, &text),
            ["sk-abcdefghijklmnopqrstuvwx", "AKIAIOSFODNN7EXAMPLE", key]
        );
        let cut = "-----BEGIN PRIVATE KEY-----\nMIIE";
        assert_eq!(ranges(Kind::Credential, cut), [cut]);
        assert!(ranges(Kind::Credential, "-----BEGIN CERTIFICATE-----\nMIIE").is_empty());
    }

    #[test]
    fn hostile_text_takes_linear_time_and_does_not_panic() {
        for piece in [
            "@",
            "a@",
            "1 ",
            "1-",
            "é@é.",
            "DE1",
            "-----BEGIN ",
            "-----BEGIN PRIVATE KEY",
            "sk-",
            "\u{0}",
        ] {
            let text = piece.repeat(200_000 / piece.len());
            for kind in Kind::ALL {
                let _ = kind.find(&text);
            }
        }
    }
}
