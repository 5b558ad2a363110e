//! The difference of two texts, by lines.

use toolwit_core::text::printable;

/// Maximum number of lines of a difference in an error.
const LINES_MAX: usize = 40;

/// Maximum length of a line of a difference in an error, in characters.
const LINE_CHARS_MAX: usize = 200;

/// The number of equal characters that are shown before the first one that differs in a long line.
const COMMON_CHARS_SHOWN: usize = 40;

/// Returns the lines between the common beginning and the common end of two texts: those of `before` after `-`, then
/// those of `after` after `+`.
#[must_use]
pub fn line_diff(before: &str, after: &str) -> Vec<String> {
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let common_start = before
        .iter()
        .zip(&after)
        .take_while(|(one, other)| one == other)
        .count();
    let (old, new) = (&before[common_start..], &after[common_start..]);
    let pairs = old.iter().rev().zip(new.iter().rev());
    let common_end = pairs.take_while(|(one, other)| one == other).count();
    let removed = old[..old.len() - common_end].iter().map(|line| format!("-{line}"));
    let added = new[..new.len() - common_end].iter().map(|line| format!("+{line}"));
    removed.chain(added).collect()
}

/// Returns the first lines of a difference, each printable and cut to the maximum length. If one line was replaced by
/// another, their common beginning is shortened.
pub(super) fn limit_diff(diff: Vec<String>) -> Vec<String> {
    let common = common_chars(&diff);
    let omitted = diff.len().saturating_sub(LINES_MAX);
    let mut lines: Vec<_> = diff
        .iter()
        .take(LINES_MAX)
        .map(|line| shorten_line(line, common))
        .collect();
    if omitted > 0 {
        lines.push(format!("… {omitted} more lines"));
    }
    lines
}

/// Returns the number of equal characters with which both lines begin, if one line was replaced by another; otherwise
/// 0.
fn common_chars(diff: &[String]) -> usize {
    let [removed, added] = diff else { return 0 };
    let (Some(removed), Some(added)) = (removed.strip_prefix('-'), added.strip_prefix('+')) else {
        return 0;
    };
    let pairs = removed.chars().zip(added.chars());
    pairs.take_while(|(one, other)| one == other).count()
}

/// Returns a line in printable form, without most of the `common` characters at its start, and cut to the maximum
/// length.
fn shorten_line(line: &str, common: usize) -> String {
    let skipped = common.saturating_sub(COMMON_CHARS_SHOWN);
    let (sign, text) = line.split_at(line.chars().next().map_or(0, char::len_utf8));
    let text = printable(text).replace(['\t', '\n'], " ");
    let mut short: String = text.chars().skip(skipped).take(LINE_CHARS_MAX).collect();
    if text.chars().count() > skipped + LINE_CHARS_MAX {
        short.push('…');
    }
    let ellipsis = if skipped > 0 { "…" } else { "" };
    format!("{sign}{ellipsis}{short}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_common_at_the_ends_are_left_out() {
        assert_eq!(line_diff("a\nb\nc", "a\nx\ny\nc"), ["-b", "+x", "+y"]);
        assert_eq!(line_diff("a\na", "a"), ["-a"]);
        assert!(line_diff("a\nb", "a\nb").is_empty());
        assert_eq!(line_diff("", "a"), ["+a"]);
    }

    #[test]
    fn a_limited_difference_is_printable_and_short() {
        let before: Vec<_> = (0..1000).map(|line| format!("{line}\u{1b}[31m")).collect();
        let lines = limit_diff(line_diff(&before.join("\n"), ""));
        assert_eq!(lines.len(), LINES_MAX + 1);
        assert_eq!(
            (lines[0].as_str(), lines[LINES_MAX].as_str()),
            ("-0[31m", "… 960 more lines")
        );
        let long = limit_diff(line_diff(
            &format!("{}a", "x".repeat(1000)),
            &format!("{}b", "x".repeat(1000)),
        ));
        let common = "x".repeat(COMMON_CHARS_SHOWN);
        assert_eq!(long, [format!("-…{common}a"), format!("+…{common}b")]);
        let removed = limit_diff(vec![format!("-{common}{common}"), format!("-{common}{common}")]);
        assert_eq!(
            removed[0],
            format!("-{common}{common}"),
            "two removed lines are not a replacement"
        );
        assert!(limit_diff(line_diff("", &"ü".repeat(1000)))[0].chars().count() < 210);
    }
}
