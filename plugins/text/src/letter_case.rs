//! Letter cases.

use unicode_segmentation::UnicodeSegmentation;

/// A letter case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterCase {
    /// `all small`
    Lower,
    /// `ALL CAPITALS`
    Upper,
    /// `Each Word`
    Title,
    /// `eachWord`
    Camel,
    /// `EachWord`
    Pascal,
    /// `each_word`
    Snake,
    /// `each-word`
    Kebab,
    /// `EACH_WORD`
    Constant,
}

/// Converts the text to a letter case.
#[must_use]
pub fn convert(text: &str, to: LetterCase) -> String {
    match to {
        LetterCase::Lower => text.to_lowercase(),
        LetterCase::Upper => text.to_uppercase(),
        LetterCase::Title => text.split_word_bounds().map(capitalized).collect(),
        LetterCase::Camel => {
            let mut words = words(text).into_iter();
            let first = words.next().map(|word| word.to_lowercase()).unwrap_or_default();
            words.fold(first, |joined, word| joined + &capitalized(word))
        }
        LetterCase::Pascal => words(text).into_iter().map(capitalized).collect(),
        LetterCase::Snake => join_words(text, "_", str::to_lowercase),
        LetterCase::Kebab => join_words(text, "-", str::to_lowercase),
        LetterCase::Constant => join_words(text, "_", str::to_uppercase),
    }
}

fn join_words(text: &str, separator: &str, write: impl Fn(&str) -> String) -> String {
    words(text).into_iter().map(write).collect::<Vec<_>>().join(separator)
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(first) => first
            .to_uppercase()
            .chain(letters.as_str().to_lowercase().chars())
            .collect(),
        None => String::new(),
    }
}

/// Splits at characters that are not letters or digits, and before a capital that begins a word: `HTTPServer2` is `HTTP`,
/// `Server2`.
fn words(text: &str) -> Vec<&str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '\'' || letter == '’';
    text.split(|letter| !is_part(letter))
        .flat_map(split_at_humps)
        .filter(|word| !word.is_empty())
        .collect()
}

/// Splits `HTTPServer` before the `S`, and `fooBar` before the `B`.
fn split_at_humps(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut letters = word.char_indices().peekable();
    let mut before: Option<char> = None;
    while let Some((index, letter)) = letters.next() {
        let after = letters.peek().map(|(_, after)| *after);
        if let Some(before) = before
            && letter.is_uppercase()
            && (!before.is_uppercase() || after.is_some_and(char::is_lowercase))
        {
            parts.push(&word[start..index]);
            start = index;
        }
        before = Some(letter);
    }
    parts.push(&word[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::{LetterCase::*, *};

    #[test]
    fn each_letter_case_converts_to_each_other() {
        for text in ["fooBar", "FooBar", "foo_bar", "foo-bar", "FOO_BAR", " foo  bar! "] {
            for (case, expected) in [
                (Camel, "fooBar"),
                (Pascal, "FooBar"),
                (Snake, "foo_bar"),
                (Kebab, "foo-bar"),
                (Constant, "FOO_BAR"),
            ] {
                assert_eq!(convert(text, case), expected, "{text:?}");
            }
        }
    }

    #[test]
    fn abbreviations_and_digits_stay_together() {
        assert_eq!(convert("parseHTTPServer2Url", Snake), "parse_http_server2_url");
        assert_eq!(convert("MP3", Kebab), "mp3");
    }

    #[test]
    fn plain_cases_change_only_letters() {
        assert_eq!(convert("hello,  wORLD! it's 5pm", Title), "Hello,  World! It's 5pm");
        assert_eq!(convert("Größe: ß", Upper), "GRÖSSE: SS");
        assert_eq!(
            convert("ΣΟΦΟΣ", Lower),
            "σοφο\u{3c2}",
            "a final sigma has a separate form"
        );
    }

    #[test]
    fn scripts_without_case_are_unchanged() {
        assert_eq!(convert("東京 タワー", Snake), "東京_タワー");
        assert_eq!(convert("", Camel), "");
        assert_eq!(convert("?!", Pascal), "");
    }
}
