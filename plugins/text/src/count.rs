//! Counts of characters, words and lines.

use unicode_segmentation::UnicodeSegmentation;

/// The counts of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Characters as a reader sees them.
    pub characters: usize,
    /// Characters that are not white space.
    pub characters_without_spaces: usize,
    /// Words.
    pub words: usize,
    /// Sentences.
    pub sentences: usize,
    /// Lines.
    pub lines: usize,
    /// Blocks of lines separated by empty lines.
    pub paragraphs: usize,
    /// Bytes in UTF-8.
    pub bytes: usize,
}

impl Counts {
    /// Counts a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let is_space = |character: &str| character.chars().all(char::is_whitespace);
        let characters = text.graphemes(true).count();
        let spaces = text.graphemes(true).filter(|character| is_space(character)).count();
        Self {
            characters,
            characters_without_spaces: characters - spaces,
            words: text.unicode_words().count(),
            sentences: text.unicode_sentences().count(),
            lines: text.lines().count(),
            paragraphs: paragraphs(text),
            bytes: text.len(),
        }
    }
}

fn paragraphs(text: &str) -> usize {
    let mut count = 0;
    let mut is_inside = false;
    for line in text.lines() {
        let is_blank = line.trim().is_empty();
        if !is_blank && !is_inside {
            count += 1;
        }
        is_inside = !is_blank;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_text_has_zero_counts() {
        assert_eq!(Counts::of(""), Counts::default());
    }

    #[test]
    fn words_and_sentences_follow_the_unicode_rules() {
        let counts = Counts::of("Don't panic. It costs 3.14 dollars! Really?\n");
        assert_eq!((counts.words, counts.sentences, counts.lines), (7, 3, 1));
    }

    #[test]
    fn characters_are_grapheme_clusters() {
        let counts = Counts::of("e\u{301} 👩‍👩‍👧 🇵🇹");
        assert_eq!((counts.characters, counts.characters_without_spaces), (5, 3));
        assert_eq!(counts.bytes, "e\u{301} 👩‍👩‍👧 🇵🇹".len());
    }

    #[test]
    fn lines_and_paragraphs_are_counted_for_all_line_breaks() {
        let counts = Counts::of("one\r\ntwo\r\n\r\n \nthree\n");
        assert_eq!((counts.lines, counts.paragraphs), (5, 2));
    }
}
