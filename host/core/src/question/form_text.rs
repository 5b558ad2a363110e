//! The texts of forms, and the errors of forms that are not valid.

use crate::text::is_printable;

/// The reason why a form is not valid, as a text for its author.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct FormError(String);

impl FormError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// Returns a text as one line without invisible characters.
///
/// # Errors
/// If the text is empty or too long.
pub(super) fn one_line(text: &str, chars_max: usize, noun: &str) -> Result<String, FormError> {
    let visible = text.chars().filter(|c| is_printable(*c));
    let visible: String = visible.map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    let line = visible.trim();
    if line.is_empty() {
        return Err(FormError::new(format!("{noun} is empty")));
    }
    if line.chars().count() > chars_max {
        return Err(FormError::new(format!("{noun} has more than {chars_max} characters")));
    }
    Ok(line.to_owned())
}
