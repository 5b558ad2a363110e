//! From text to the stems that are compared.

use std::collections::HashMap;
use std::sync::Arc;

use rust_stemmers::{Algorithm, Stemmer};

use super::stop_words::{is_filler, is_stop_word};

/// The longest word that is read, in bytes. Longer runs are data, not words.
const WORD_BYTES_MAX: usize = 48;

/// How many words [`Stems`] remembers before it starts anew.
const STEMS_MAX: usize = 1 << 16;

/// A word as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) stem: Arc<str>,
    /// Whether it is only a way of asking.
    pub(super) is_filler: bool,
}

/// Cuts the endings off words, and remembers the words: most of any text are the same few.
#[derive(Clone, Debug, Default)]
pub(super) struct Stems {
    /// `None` for words that are left out.
    known: HashMap<Box<str>, Option<Token>>,
}

impl Stems {
    fn token(&mut self, word: &str) -> Option<Token> {
        if word.is_empty() || word.len() > WORD_BYTES_MAX {
            return None;
        }
        if let Some(token) = self.known.get(word) {
            return token.clone();
        }
        if self.known.len() >= STEMS_MAX {
            self.known.clear();
        }
        let lower = word.to_lowercase();
        let token = (!is_stop_word(&lower)).then(|| Token {
            stem: Stemmer::create(Algorithm::English).stem(&lower).into(),
            is_filler: is_filler(&lower),
        });
        self.known.insert(word.into(), token.clone());
        token
    }
}

/// Reads the words of a text: identifiers are split, stop words left out, endings cut off.
pub(super) fn tokens(text: &str, stems: &mut Stems, words_max: usize) -> Vec<Token> {
    let mut tokens = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        for part in parts(run) {
            if tokens.len() == words_max {
                return tokens;
            }
            tokens.extend(stems.token(part));
        }
    }
    tokens
}

/// Splits a run of letters and digits where its writing changes: `getHTTPStatus2` has `get`, `HTTP`, `Status`, `2`.
///
/// Short mixtures such as `mp3`, `s3` or `3d` are words of their own and stay whole.
fn parts(run: &str) -> Vec<&str> {
    const MIXED_BYTES_MAX: usize = 4;
    let is_mixed = run.bytes().any(|b| b.is_ascii_digit()) && run.bytes().any(|b| b.is_ascii_alphabetic());
    if is_mixed && run.len() <= MIXED_BYTES_MAX {
        return vec![run];
    }
    let mut parts = Vec::new();
    let mut start = 0;
    let mut before: Option<char> = None;
    let mut characters = run.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let after = characters.peek().map(|(_, next)| *next);
        if before.is_some_and(|before| is_border(before, character, after)) {
            parts.push(&run[start..at]);
            start = at;
        }
        before = Some(character);
    }
    parts.push(&run[start..]);
    parts
}

fn is_border(before: char, character: char, after: Option<char>) -> bool {
    let begins_word = character.is_uppercase() && (before.is_lowercase() || after.is_some_and(char::is_lowercase));
    begins_word && !before.is_numeric() || before.is_numeric() != character.is_numeric() || is_ideograph(before)
}

/// Scripts that write no spaces: each character is taken as a word.
fn is_ideograph(character: char) -> bool {
    matches!(u32::from(character), 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

/// Writes a name the one way in which names are compared: lower case, one `_` between words.
pub(super) fn canonical_name(name: &str) -> String {
    let mut words = Vec::new();
    for run in name.split(|c: char| !c.is_alphanumeric()) {
        words.extend(
            parts(run)
                .into_iter()
                .filter(|part| !part.is_empty())
                .map(str::to_lowercase),
        );
    }
    words.join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(text: &str) -> Vec<String> {
        tokens(text, &mut Stems::default(), 100)
            .into_iter()
            .map(|token| token.stem.to_string())
            .collect()
    }

    // accept: 139
    #[test]
    fn identifiers_split_into_words_and_words_meet_in_their_stem() {
        assert_eq!(stems("scrapeWebsites"), stems("scraping website"));
        assert_eq!(stems("get_HTTPStatus2"), ["get", "http", "status", "2"]);
        assert_eq!(stems("weather.get-forecast"), stems("weatherGetForecast"));
        assert_eq!(stems("convert to mp3 and s3"), ["convert", "mp3", "s3"]);
        assert_eq!(stems("天気予報").len(), 4);
    }

    #[test]
    fn stop_words_and_data_are_no_words() {
        assert_eq!(stems("what is the weather"), ["weather"]);
        assert_eq!(stems(&"x".repeat(500)), [""; 0]);
        assert_eq!(stems(" \u{0}\t…🎉 "), [""; 0]);
    }

    #[test]
    fn names_compare_in_any_way_of_writing() {
        for name in ["getWeather", "get_weather", "get-weather", "Get Weather", "get.weather"] {
            assert_eq!(canonical_name(name), "get_weather");
        }
    }
}
