//! A line diff of two texts.

use toolwit_core::text::printable;

/// Maximum number of lines of a diff in an error.
const LINES_MAX: usize = 40;

/// Maximum length of a line of a diff in an error, in characters.
const LINE_CHARS_MAX: usize = 200;

/// Maximum number of equal characters that are shown before the first difference between two lines.
const COMMON_CHARS_SHOWN: usize = 40;

/// Returns the lines that remain of two texts without their common first lines and their common last lines: first the
/// lines of `before`, each with the prefix `-`, then the lines of `after`, each with the prefix `+`.
#[must_use]
pub fn line_diff(before: &str, after: &str) -> Vec<String> {
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let common_start = before
        .iter()
        .zip(&after)
        .take_while(|(before, after)| before == after)
        .count();
    let (old, new) = (&before[common_start..], &after[common_start..]);
    let pairs = old.iter().rev().zip(new.iter().rev());
    let common_end = pairs.take_while(|(old, new)| old == new).count();
    let removed = old[..old.len() - common_end].iter().map(|line| format!("-{line}"));
    let added = new[..new.len() - common_end].iter().map(|line| format!("+{line}"));
    removed.chain(added).collect()
}

/// Returns the first lines of a diff, each in printable form and truncated to the maximum length. If the diff replaces
/// one line with another, most of their common prefix is omitted.
pub(super) fn limit_diff(diff: Vec<String>) -> Vec<String> {
    let prefix_chars = common_prefix_chars(&diff);
    let omitted = diff.len().saturating_sub(LINES_MAX);
    let mut lines: Vec<_> = diff
        .iter()
        .take(LINES_MAX)
        .map(|line| shorten_line(line, prefix_chars))
        .collect();
    if omitted > 0 {
        lines.push(format!("… {omitted} more lines"));
    }
    lines
}

/// Returns the length of the common prefix of two lines, in characters, if the diff replaces one line with another;
/// otherwise 0.
fn common_prefix_chars(diff: &[String]) -> usize {
    let [removed, added] = diff else { return 0 };
    let (Some(removed), Some(added)) = (removed.strip_prefix('-'), added.strip_prefix('+')) else {
        return 0;
    };
    let pairs = removed.chars().zip(added.chars());
    pairs.take_while(|(removed, added)| removed == added).count()
}

/// Returns a line of a diff in printable form, truncated to the maximum length. Of the first `prefix_chars` characters
/// of its text, only the last [`COMMON_CHARS_SHOWN`] are kept.
fn shorten_line(line: &str, prefix_chars: usize) -> String {
    let skipped = prefix_chars.saturating_sub(COMMON_CHARS_SHOWN);
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
    fn common_first_and_last_lines_are_omitted() {
        assert_eq!(line_diff("a\nb\nc", "a\nx\ny\nc"), ["-b", "+x", "+y"]);
        assert_eq!(line_diff("a\na", "a"), ["-a"]);
        assert!(line_diff("a\nb", "a\nb").is_empty());
        assert_eq!(line_diff("", "a"), ["+a"]);
    }

    #[test]
    fn a_limited_diff_is_printable_and_short() {
        let before: Vec<_> = (0..1000).map(|line| format!("{line}\u{1b}[31m")).collect();
        let lines = limit_diff(line_diff(&before.join("\n"), ""));
        assert_eq!(lines.len(), LINES_MAX + 1);
        assert_eq!(
            (lines[0].as_str(), lines[LINES_MAX].as_str()),
            ("-0[31m", "… 960 more lines")
        );
        let replacement = limit_diff(line_diff(
            &format!("{}a", "x".repeat(1000)),
            &format!("{}b", "x".repeat(1000)),
        ));
        let common = "x".repeat(COMMON_CHARS_SHOWN);
        assert_eq!(replacement, [format!("-…{common}a"), format!("+…{common}b")]);
        let removed = limit_diff(vec![format!("-{common}{common}"), format!("-{common}{common}")]);
        assert_eq!(
            removed[0],
            format!("-{common}{common}"),
            "two removed lines are not a replacement"
        );
        assert!(limit_diff(line_diff("", &"ü".repeat(1000)))[0].chars().count() < 210);
    }
}
