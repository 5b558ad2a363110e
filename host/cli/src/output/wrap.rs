//! Wrapping lines between words, for a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Minimum number of columns for the text of a wrapped line.
const TEXT_COLUMNS_MIN: usize = 20;

/// Indentation of continued lines in addition to that of their line, in columns.
const CONTINUATION_COLUMNS: usize = 2;

/// Wraps the lines of a text that are longer than `columns`. Continued lines are indented further than their line, so
/// that no text can forge a line of the host through its own length.
///
/// Escape sequences of styles have no width. A word that is longer than a line is broken here, because the terminal
/// would break it without an indentation.
pub(crate) fn wrap(text: &str, columns: usize) -> String {
    let mut wrapped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        wrap_line(line, columns, &mut wrapped);
    }
    wrapped
}

fn wrap_line(line: &str, columns: usize, wrapped: &mut String) {
    if width(line.trim_end()) <= columns {
        wrapped.push_str(line);
        return;
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let indent = (indent + CONTINUATION_COLUMNS).min(columns.saturating_sub(TEXT_COLUMNS_MIN));
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let word_width = width(word.trim_end());
        if column > indent && column + word_width > columns {
            begin_line(indent, wrapped);
            column = indent;
        }
        if column + word_width > columns {
            column = push_broken(word, columns, indent, column, wrapped);
        } else {
            wrapped.push_str(word);
            column += width(word.trim_end_matches('\n'));
        }
    }
}

/// Begins a continued line. The spaces before it are removed.
fn begin_line(indent: usize, wrapped: &mut String) {
    let end = wrapped.trim_end_matches(' ').len();
    wrapped.truncate(end);
    wrapped.push('\n');
    wrapped.extend(std::iter::repeat_n(' ', indent));
}

/// Adds a word that is longer than a line, in parts. Returns the column after it.
fn push_broken(word: &str, columns: usize, indent: usize, mut column: usize, wrapped: &mut String) -> usize {
    let mut is_escape_sequence = false;
    for c in word.chars() {
        let width = match c {
            '\x1b' => {
                is_escape_sequence = true;
                0
            }
            'm' if is_escape_sequence => {
                is_escape_sequence = false;
                0
            }
            _ if is_escape_sequence => 0,
            c => c.width().unwrap_or_default(),
        };
        if column + width > columns && column > indent && c != ' ' {
            begin_line(indent, wrapped);
            column = indent;
        }
        wrapped.push(c);
        column += width;
    }
    column
}

/// Returns the maximum number of columns that a terminal uses for a text. An escape sequence uses no columns, and a
/// wide character two. Some terminals draw the characters of a ligature or an emoji sequence separately, so the larger
/// width counts.
fn width(text: &str) -> usize {
    let visible_width = |text: &str| {
        let sum_of_characters = text.chars().map(|c| c.width().unwrap_or_default()).sum();
        text.width().max(sum_of_characters)
    };
    anstream::adapter::strip_str(text).map(visible_width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_between_words_with_their_indentation() {
        assert_eq!(wrap("one two three\nfour\n", 30), "one two three\nfour\n");
        assert_eq!(
            wrap("    the quick brown fox jumps over\n", 24),
            "    the quick brown fox\n    jumps over\n"
        );
        assert_eq!(
            wrap("the quick brown fox jumps over\n", 24),
            "the quick brown fox\n  jumps over\n"
        );
        assert_eq!(wrap("a\n\nb", 24), "a\n\nb");
    }

    // attack: J5, attack: J10
    #[test]
    fn text_that_fills_the_terminal_does_not_begin_a_line() {
        let indents = ["", "    ", &" ".repeat(70)];
        // Without a space, the padding and the forged beginning are one word. Some terminals draw the letters of a
        // ligature apart.
        let ligatures = "\u{644}\u{627}".repeat(30);
        let paddings = [
            " ".repeat(60),
            " ".repeat(59),
            "東".repeat(10) + " ",
            "x".repeat(60),
            "東".repeat(30),
            "x".repeat(119),
            ligatures.clone() + " ",
            ligatures,
        ];
        for padding in paddings {
            for indent in indents {
                let text = format!("{indent}{padding}error: forged, and more of it, and more\n");
                let wrapped = wrap(&text, 60);
                let begins = |line: &&str| !line.is_empty() && !line.starts_with(' ');
                assert_eq!(wrapped.lines().skip(1).find(begins), None, "{wrapped}");
                assert!(wrapped.lines().all(|line| width(line) <= 60), "{wrapped}");
            }
        }
    }

    #[test]
    fn styles_have_no_width_and_long_words_are_broken() {
        let styled = "\x1b[31merror:\x1b[0m the quick brown fox";
        assert_eq!(wrap(styled, 26), styled);
        let path = "/a/very/\x1b[31mlong\x1b[0m/path/that/has/no/space";
        assert_eq!(
            wrap(&format!("see {path} now\n"), 24),
            "see\n  /a/very/\x1b[31mlong\x1b[0m/path/that\n  /has/no/space now\n"
        );
    }
}
