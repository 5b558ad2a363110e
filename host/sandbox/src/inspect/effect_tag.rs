//! The doc tag `@effect`, with which an author claims the effect class of a function.
//!
//! The tag is a line of the docs: `@effect read`. The line is removed from the docs, so that the model does not read it. If the
//! word after any tag of a function is not an effect class, the function has no claimed class.

use crate::values::types::Shape;
use toolwit_core::EffectClass;

const TAG: &str = "@effect";

/// Removes the tags from the docs of the functions, and sets the effect classes that they claim.
pub(super) fn apply(shape: &mut Shape) {
    for function in &mut shape.functions {
        let Some((docs, claim)) = function.docs.as_deref().and_then(split_tags) else {
            continue;
        };
        function.effect = claim;
        function.docs = (!docs.is_empty()).then_some(docs);
    }
}

/// Splits docs into the text without tags and the claimed class. If several tags claim classes, the greatest class is the claimed
/// one. `None` for docs without a tag.
fn split_tags(docs: &str) -> Option<(String, Option<EffectClass>)> {
    if !docs.contains(TAG) {
        return None;
    }
    let mut claims = Vec::new();
    let mut lines = Vec::new();
    for line in docs.lines() {
        match line
            .trim()
            .strip_prefix(TAG)
            .filter(|argument| argument.is_empty() || argument.starts_with(char::is_whitespace))
        {
            Some(argument) => claims.push(argument.trim().trim_end_matches('.').parse().ok()),
            None => lines.push(line),
        }
    }
    if claims.is_empty() {
        return None;
    }
    // If one tag has no valid class, the claims of the other tags are not trusted either.
    let valid_claims = claims.into_iter().collect::<Option<Vec<EffectClass>>>();
    Some((
        lines.join("\n").trim().to_owned(),
        valid_claims.and_then(|claims| claims.into_iter().max()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_a_separate_line_and_is_removed_from_the_docs() {
        let read = Some(EffectClass::Read);
        assert_eq!(split_tags("Adds.\n\n@effect read"), Some(("Adds.".to_owned(), read)));
        assert_eq!(
            split_tags("@effect write.\nStores."),
            Some(("Stores.".to_owned(), Some(EffectClass::Write)))
        );
        assert_eq!(
            split_tags("  @effect\tidempotent"),
            Some((String::new(), Some(EffectClass::Idempotent)))
        );
        assert_eq!(split_tags("Has the @effect read of a tag."), None);
        assert_eq!(split_tags("@effects read"), None);
    }

    #[test]
    fn an_invalid_tag_voids_all_claims_and_the_greatest_of_several_classes_is_claimed() {
        assert_eq!(split_tags("@effect none"), Some((String::new(), None)));
        assert_eq!(split_tags("@effect read\n@effect oops"), Some((String::new(), None)));
        assert_eq!(
            split_tags("@effect read\n@effect write"),
            Some((String::new(), Some(EffectClass::Write)))
        );
    }
}
