//! Wrapping lines between words, for a terminal.

/// Minimum number of columns for the text of a wrapped line.
const TEXT_COLUMNS_MIN: usize = 20;

/// Wraps the lines of a text that are longer than `columns`. Continued lines have the indentation of their line.
///
/// Escape sequences of styles have no width. A word that is longer than a line is not broken, so that paths and commands can be
/// copied.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let mut wrapped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        wrap_line(line, columns, &mut wrapped);
    }
    wrapped
}

fn wrap_line(line: &str, columns: usize, wrapped: &mut String) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    if width(line.trim_end()) <= columns || indent + TEXT_COLUMNS_MIN > columns {
        wrapped.push_str(line);
        return;
    }
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        let visible = width(word.trim_end());
        if used > indent && used + visible > columns {
            let end = wrapped.trim_end_matches(' ').len();
            wrapped.truncate(end);
            wrapped.push('\n');
            wrapped.extend(std::iter::repeat_n(' ', indent));
            used = indent;
        }
        wrapped.push_str(word);
        used += width(word.trim_end_matches('\n'));
    }
}

/// Returns the number of characters that are not part of an escape sequence.
fn width(text: &str) -> usize {
    anstream::adapter::strip_str(text)
        .map(|part| part.chars().count())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_between_words_with_their_indentation() {
        assert_eq!(wrapped("one two three\nfour\n", 30), "one two three\nfour\n");
        assert_eq!(
            wrapped("    the quick brown fox jumps over\n", 24),
            "    the quick brown fox\n    jumps over\n"
        );
        assert_eq!(wrapped("a\n\nb", 24), "a\n\nb");
    }

    #[test]
    fn styles_have_no_width_and_long_words_are_kept() {
        let styled = "\x1b[31merror:\x1b[0m the quick brown fox";
        assert_eq!(wrapped(styled, 26), styled);
        let path = "/a/very/long/path/that/has/no/space";
        assert_eq!(wrapped(&format!("see {path}\n"), 24), format!("see\n{path}\n"));
    }
}
