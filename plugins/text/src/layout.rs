//! Text fitted into a width.

use unicode_segmentation::UnicodeSegmentation;

/// Marks the end of a truncated text.
const ELLIPSIS: &str = "…";

fn length(text: &str) -> usize {
    text.graphemes(true).count()
}

/// Truncates a text to a maximum length, including the ellipsis. Cuts between words if that keeps at least half of the length.
#[must_use]
pub fn truncate(text: &str, characters_max: usize) -> String {
    if length(text) <= characters_max {
        return text.to_owned();
    }
    let Some(room) = characters_max.checked_sub(1) else {
        return String::new();
    };
    let head_bytes: usize = text.graphemes(true).take(room).map(str::len).sum();
    let (head, rest) = text.split_at(head_bytes);
    let cuts_word = !rest.starts_with(char::is_whitespace);
    let truncated = match head.rfind(char::is_whitespace) {
        Some(end) if cuts_word && length(head[..end].trim_end()) * 2 >= room => &head[..end],
        _ => head,
    };
    format!("{}{ELLIPSIS}", truncated.trim_end())
}

/// Wraps the lines of a text at spaces. A line is longer than `width` characters only if it has a single word.
///
/// Empty lines are preserved. Continuation lines have the same indentation as the wrapped line.
#[must_use]
pub fn wrap(text: &str, width: usize) -> String {
    let mut wrapped: Vec<String> = Vec::new();
    for line in text.split('\n') {
        let line = line.trim_end();
        let words = line.trim_start();
        let indent = &line[..line.len() - words.len()];
        wrapped.push(indent.to_owned());
        let mut line_length = length(indent);
        let mut is_first = true;
        for word in words.split_whitespace() {
            let word_length = length(word);
            if !is_first && line_length + 1 + word_length > width {
                wrapped.push(indent.to_owned());
                line_length = length(indent);
                is_first = true;
            }
            if let Some(current) = wrapped.last_mut() {
                if !is_first {
                    current.push(' ');
                    line_length += 1;
                }
                current.push_str(word);
            }
            line_length += word_length;
            is_first = false;
        }
    }
    wrapped.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fits_is_unchanged() {
        assert_eq!(truncate("short", 5), "short");
        assert_eq!(truncate("", 0), "");
    }

    #[test]
    fn a_cut_falls_between_words_unless_that_loses_too_much() {
        assert_eq!(truncate("one two three", 9), "one two…");
        assert_eq!(truncate("one two three", 8), "one two…");
        assert_eq!(truncate("a extraordinary", 8), "a extra…");
        assert_eq!(truncate("word", 1), "…");
        assert_eq!(truncate("word", 0), "");
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(truncate("🇵🇹🇵🇹🇵🇹", 2), "🇵🇹…");
        assert_eq!(truncate("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
    }

    #[test]
    fn lines_are_filled_up_to_the_width() {
        assert_eq!(wrap("one two three four", 9), "one two\nthree\nfour");
        assert_eq!(wrap("one two three four", 10), "one two\nthree four");
        assert_eq!(wrap("a extraordinary b", 5), "a\nextraordinary\nb");
    }

    #[test]
    fn empty_lines_and_indentation_are_preserved() {
        assert_eq!(wrap("  one two three\n\nend\n", 9), "  one two\n  three\n\nend\n");
        assert_eq!(wrap("one two", 0), "one\ntwo");
    }
}
