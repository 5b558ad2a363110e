//! The difference of two texts, by lines.

/// Returns the lines that differ, after `-` and `+`, without the common beginning and end.
#[must_use]
pub fn line_diff(before: &str, after: &str) -> Vec<String> {
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let start = before
        .iter()
        .zip(&after)
        .take_while(|(one, other)| one == other)
        .count();
    let (old, new) = (&before[start..], &after[start..]);
    let pairs = old.iter().rev().zip(new.iter().rev());
    let end = pairs.take_while(|(one, other)| one == other).count();
    let removed = old[..old.len() - end].iter().map(|line| format!("-{line}"));
    let added = new[..new.len() - end].iter().map(|line| format!("+{line}"));
    removed.chain(added).collect()
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
}
