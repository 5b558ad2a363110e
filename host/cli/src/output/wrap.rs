//! Wrapping of lines between words, for a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Minimum number of columns that a continuation line has for its text, after its indentation.
const TEXT_COLUMNS_MIN: usize = 20;

/// Indentation of continuation lines, in addition to that of the wrapped line, in columns.
const CONTINUATION_COLUMNS: usize = 2;

/// Wraps the lines of a text that are wider than `columns`. Continuation lines are indented, so that a long text cannot
/// forge a line of the host. On a narrow terminal, the indentation is smaller, because it leaves [`TEXT_COLUMNS_MIN`]
/// columns for the text, but it has at least one column.
///
/// Escape sequences of styles have no width. A word that is wider than a line is broken here, because the terminal would
/// break it without an indentation.
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
    let indent = (indent + CONTINUATION_COLUMNS)
        .min(columns.saturating_sub(TEXT_COLUMNS_MIN))
        .max(1);
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let word_width = width(word.trim_end());
        if column > indent && column + word_width > columns {
            begin_continuation_line(indent, wrapped);
            column = indent;
        }
        if column + word_width > columns {
            column = push_long_word(word, columns, indent, column, wrapped);
        } else {
            wrapped.push_str(word);
            column += width(word.trim_end_matches('\n'));
        }
    }
}

/// Begins a continuation line. Removes the spaces at the end of the previous line.
fn begin_continuation_line(indent: usize, wrapped: &mut String) {
    let end = wrapped.trim_end_matches(' ').len();
    wrapped.truncate(end);
    wrapped.push('\n');
    wrapped.extend(std::iter::repeat_n(' ', indent));
}

/// Adds a word that is wider than a line, broken over several lines. Returns the column after the word.
fn push_long_word(word: &str, columns: usize, indent: usize, mut column: usize, wrapped: &mut String) -> usize {
    let mut is_in_escape_sequence = false;
    for c in word.chars() {
        let width = match c {
            '\x1b' => {
                is_in_escape_sequence = true;
                0
            }
            'm' if is_in_escape_sequence => {
                is_in_escape_sequence = false;
                0
            }
            _ if is_in_escape_sequence => 0,
            c => c.width().unwrap_or_default(),
        };
        if column + width > columns && column > indent && c != ' ' {
            begin_continuation_line(indent, wrapped);
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
        // A padding that does not end with a space is one word together with the forged `error:`. Some terminals draw the
        // letters of a ligature apart.
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
                let begins_at_margin = |line: &&str| !line.is_empty() && !line.starts_with(' ');
                assert_eq!(wrapped.lines().skip(1).find(begins_at_margin), None, "{wrapped}");
                assert!(wrapped.lines().all(|line| width(line) <= 60), "{wrapped}");
                for columns in [1, 2, 20] {
                    let wrapped = wrap(&text, columns);
                    assert_eq!(wrapped.lines().skip(1).find(begins_at_margin), None, "{wrapped}");
                }
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
