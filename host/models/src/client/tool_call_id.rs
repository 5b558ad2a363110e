//! Converts the ids of tool calls to the form that a provider accepts.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The form of the call ids that a provider accepts. A history can contain ids of another provider, in another form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallIdForm {
    /// Any text.
    #[default]
    Any,
    /// Any text of at most 40 bytes.
    Short,
    /// From 1 to 64 ASCII letters, digits, `_` and `-`.
    Word,
    /// Nine ASCII letters and digits.
    NineCharacters,
}

impl CallIdForm {
    /// Returns the id unchanged if it has this form. Otherwise, returns an id of this form that is derived from a hash of the id.
    /// Equal ids give equal results, so that a tool result still has the same id as its call.
    pub(crate) fn apply_to(self, id: &str) -> Cow<'_, str> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let has_this_form = match self {
            Self::Any => true,
            Self::Short => id.len() <= 40,
            Self::Word => !id.is_empty() && id.len() <= 64 && id.bytes().all(is_word),
            Self::NineCharacters => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        };
        if has_this_form {
            return Cow::Borrowed(id);
        }
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let digits = format!("{:016x}", hasher.finish());
        Cow::Owned(match self {
            Self::NineCharacters => digits[..9].to_owned(),
            Self::Any | Self::Short | Self::Word => format!("call_{digits}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_other_providers_get_the_required_form() {
        for id in ["", "functions.add:0", "é", &"x".repeat(65)] {
            let word = CallIdForm::Word.apply_to(id);
            assert!(
                word.starts_with("call_") && CallIdForm::Word.apply_to(&word) == word,
                "{id}"
            );
        }
        for id in ["call_1", "toolu_01A", "abcdefgh-"] {
            let nine = CallIdForm::NineCharacters.apply_to(id).into_owned();
            assert_eq!(
                (nine.len(), CallIdForm::NineCharacters.apply_to(&nine)),
                (9, Cow::Borrowed(nine.as_str()))
            );
            assert_eq!(
                CallIdForm::NineCharacters.apply_to(id),
                nine,
                "every request contains the same id"
            );
        }
        assert_eq!(CallIdForm::Any.apply_to("functions.add:0"), "functions.add:0");
        let long = "functions.add:0".repeat(3);
        let short = CallIdForm::Short.apply_to(&long);
        assert!(short.len() <= 40 && CallIdForm::Short.apply_to(&long) == short);
        assert_eq!(CallIdForm::Short.apply_to(&long[..40]), long[..40]);
        assert_eq!(CallIdForm::Word.apply_to("toolu_01-A"), "toolu_01-A");
    }
}
