//! The difference between two texts, line by line.

use similar::{ChangeTag, TextDiff};

/// The difference between two texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The number of added lines.
    pub added: usize,
    /// The number of removed lines.
    pub removed: usize,
    /// A unified diff; empty if there is no difference.
    pub unified: String,
}

impl Difference {
    /// Compares two texts, with a number of context lines around each change.
    #[must_use]
    pub fn between(old: &str, new: &str, context_lines: usize) -> Self {
        if old == new {
            return Self::default();
        }
        let diff = TextDiff::from_lines(old, new);
        let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
        Self {
            added: count(ChangeTag::Insert),
            removed: count(ChangeTag::Delete),
            unified: diff
                .unified_diff()
                .context_radius(context_lines)
                .header("old", "new")
                .to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_its_context() {
        let difference = Difference::between("a\nb\nc\nd\n", "a\nb\nX\nd\n", 1);
        assert_eq!((difference.added, difference.removed), (1, 1));
        assert_eq!(
            difference.unified,
            "--- old\n+++ new\n@@ -2,3 +2,3 @@\n b\n-c\n+X\n d\n"
        );
    }

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(Difference::between("same\n", "same\n", 3), Difference::default());
    }

    #[test]
    fn a_missing_line_break_at_the_end_is_a_difference() {
        let difference = Difference::between("a\n", "a", 3);
        assert_eq!((difference.added, difference.removed), (1, 1));
        assert!(
            difference.unified.ends_with("\\ No newline at end of file\n"),
            "{}",
            difference.unified
        );
    }

    #[test]
    fn distant_changes_are_in_separate_hunks() {
        let old: String = (0..40).map(|line| format!("{line}\n")).collect();
        let new = old.replace("\n3\n", "\nthree\n").replace("\n30\n", "\nthirty\n");
        assert_eq!(Difference::between(&old, &new, 2).unified.matches("@@ -").count(), 2);
    }
}
