//! Parts of a long text.

/// The default number of characters of a part.
pub const LENGTH_DEFAULT: usize = 20_000;
/// The greatest number of characters of a part.
pub const LENGTH_MAX: usize = 100_000;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excerpt<'a> {
    /// The part.
    pub text: &'a str,
    /// The number of characters of the full text.
    pub total_chars: usize,
    /// The position of the next part, in characters. `None` at the end.
    pub next_offset: Option<usize>,
}

/// Returns a part of a text: at most `length_max` characters from an offset in characters.
///
/// # Errors
/// If the offset is beyond the end of the text, or the length is not between 1 and [`LENGTH_MAX`].
pub fn excerpt(text: &str, offset: usize, length_max: usize) -> Result<Excerpt<'_>, String> {
    if !(1..=LENGTH_MAX).contains(&length_max) {
        return Err(format!("`length_max` must be from 1 to {LENGTH_MAX}"));
    }
    let total_chars = text.chars().count();
    if offset > 0 && offset >= total_chars {
        return Err(format!(
            "`offset` is {offset}, but the text has {total_chars} characters"
        ));
    }
    let position = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let end = offset.saturating_add(length_max);
    Ok(Excerpt {
        text: &text[position(offset)..position(end)],
        total_chars,
        next_offset: (end < total_chars).then_some(end),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_by_characters() {
        let text = "äöü€!";
        let first = excerpt(text, 0, 3).unwrap();
        assert_eq!((first.text, first.total_chars, first.next_offset), ("äöü", 5, Some(3)));
        let second = excerpt(text, 3, 3).unwrap();
        assert_eq!((second.text, second.next_offset), ("€!", None));
        assert_eq!(excerpt("", 0, 10).unwrap().text, "");
    }

    #[test]
    fn part_outside_the_text_is_refused() {
        assert!(excerpt("abc", 3, 1).unwrap_err().contains("3 characters"));
        for length in [0, LENGTH_MAX + 1] {
            assert!(excerpt("abc", 0, length).unwrap_err().contains("length_max"));
        }
    }
}
