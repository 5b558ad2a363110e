//! Tokenisation: from text to stems.

use std::collections::HashMap;
use std::sync::Arc;

use rust_stemmers::{Algorithm, Stemmer};

use super::stop_words::{is_filler, is_stop_word};

/// The maximum length of a word, in bytes. Longer words are omitted: they are usually data, such as a hash.
const WORD_BYTES_MAX: usize = 48;

/// The maximum number of words in the cache of [`CachedStemmer`]. A full cache is cleared.
const CACHED_WORDS_MAX: usize = 1 << 16;

/// A stemmed word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) stem: Arc<str>,
    /// Whether the word is a filler; see [`is_filler`].
    pub(super) is_filler: bool,
}

/// A stemmer with a cache, because texts consist mostly of a few frequent words.
#[derive(Clone, Debug, Default)]
pub(super) struct CachedStemmer {
    /// The token of each word, by the word as it occurs in a text; `None` for a stop word.
    cache: HashMap<Box<str>, Option<Token>>,
}

impl CachedStemmer {
    /// Returns the token of a word. `None` if it is a stop word, empty, or too long.
    fn token(&mut self, word: &str) -> Option<Token> {
        if word.is_empty() || word.len() > WORD_BYTES_MAX {
            return None;
        }
        if let Some(token) = self.cache.get(word) {
            return token.clone();
        }
        if self.cache.len() >= CACHED_WORDS_MAX {
            self.cache.clear();
        }
        let lower = word.to_lowercase();
        let token = (!is_stop_word(&lower)).then(|| Token {
            stem: Stemmer::create(Algorithm::English).stem(&lower).into(),
            is_filler: is_filler(&lower),
        });
        self.cache.insert(word.into(), token.clone());
        token
    }
}

/// Returns the first `words_max` stemmed words of a text. Splits identifiers; omits stop words and words that are too long.
pub(super) fn tokens(text: &str, stemmer: &mut CachedStemmer, words_max: usize) -> Vec<Token> {
    let mut tokens = Vec::new();
    for word in split(text) {
        if tokens.len() == words_max {
            return tokens;
        }
        tokens.extend(stemmer.token(word));
    }
    tokens
}

/// Returns the words of a text in lower case. Splits identifiers; omits stop words and words that are too long.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    let words = split(text).filter(|word| !word.is_empty() && word.len() <= WORD_BYTES_MAX);
    words.map(str::to_lowercase).filter(|word| !is_stop_word(word))
}

/// Splits a text into words, and identifiers into their words. Some of the words may be empty.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).flat_map(identifier_words)
}

/// Splits a run of letters and digits before a capital letter that begins a word, and between letters and digits:
/// `getHTTPStatus2` becomes `get`, `HTTP`, `Status`, `2`.
///
/// Also splits after each character of a script without spaces; see [`is_unspaced`]. A short mixture of letters and digits, such
/// as `mp3`, `s3` or `3d`, is not split.
fn identifier_words(run: &str) -> Vec<&str> {
    const MIXED_BYTES_MAX: usize = 4;
    let is_mixed = run.bytes().any(|b| b.is_ascii_digit()) && run.bytes().any(|b| b.is_ascii_alphabetic());
    if is_mixed && run.len() <= MIXED_BYTES_MAX {
        return vec![run];
    }
    let mut words = Vec::new();
    let mut start = 0;
    let mut before: Option<char> = None;
    let mut characters = run.char_indices().peekable();
    while let Some((index, character)) = characters.next() {
        let after = characters.peek().map(|(_, next)| *next);
        if before.is_some_and(|before| is_boundary(before, character, after)) {
            words.push(&run[start..index]);
            start = index;
        }
        before = Some(character);
    }
    words.push(&run[start..]);
    words
}

/// Returns whether a word begins at `character`, which stands between `before` and `after`.
fn is_boundary(before: char, character: char, after: Option<char>) -> bool {
    let begins_word = character.is_uppercase() && (before.is_lowercase() || after.is_some_and(char::is_lowercase));
    begins_word && !before.is_numeric() || before.is_numeric() != character.is_numeric() || is_unspaced(before)
}

/// Returns whether a character belongs to a script without spaces between words. A word ends after each such character.
fn is_unspaced(character: char) -> bool {
    matches!(u32::from(character), 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

/// Returns the canonical form of a name: lower case, words separated by one `_`.
pub(super) fn canonical_name(name: &str) -> String {
    let mut words = Vec::new();
    for run in name.split(|c: char| !c.is_alphanumeric()) {
        words.extend(
            identifier_words(run)
                .into_iter()
                .filter(|word| !word.is_empty())
                .map(str::to_lowercase),
        );
    }
    words.join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(text: &str) -> Vec<String> {
        tokens(text, &mut CachedStemmer::default(), 100)
            .into_iter()
            .map(|token| token.stem.to_string())
            .collect()
    }

    // accept: 139
    #[test]
    fn identifiers_are_split_and_words_are_stemmed() {
        assert_eq!(stems("scrapeWebsites"), stems("scraping website"));
        assert_eq!(stems("get_HTTPStatus2"), ["get", "http", "status", "2"]);
        assert_eq!(stems("weather.get-forecast"), stems("weatherGetForecast"));
        assert_eq!(stems("convert to mp3 and s3"), ["convert", "mp3", "s3"]);
        assert_eq!(stems("天気予報").len(), 4);
    }

    #[test]
    fn stop_words_long_words_and_symbols_are_ignored() {
        assert_eq!(stems("what is the weather"), ["weather"]);
        assert_eq!(stems(&"x".repeat(500)), [""; 0]);
        assert_eq!(stems(" \u{0}\t…🎉 "), [""; 0]);
    }

    #[test]
    fn notations_of_a_name_have_the_same_canonical_form() {
        for name in ["getWeather", "get_weather", "get-weather", "Get Weather", "get.weather"] {
            assert_eq!(canonical_name(name), "get_weather");
        }
    }
}
