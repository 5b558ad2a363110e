//! Annotations of tools, which state the effect of a call.

use rmcp::model::ToolAnnotations;
use toolwit::tool::{Effect, EffectClass};

/// Returns the annotations for the effect of a tool. An unknown effect has the class [`EffectClass::Write`], so that the
/// tool is annotated as destructive. A client assumes the same of a tool without annotations.
pub(crate) fn annotations(effect: Effect) -> ToolAnnotations {
    let annotations = ToolAnnotations::new();
    match effect.class {
        EffectClass::Read => annotations.read_only(true),
        EffectClass::Idempotent => annotations.read_only(false).destructive(true).idempotent(true),
        EffectClass::Write => annotations.read_only(false).destructive(true).idempotent(false),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use toolwit::tool::EffectSource;

    #[test]
    fn only_reading_tools_are_annotated_as_read_only() {
        let hints = |class| json!(annotations(Effect::new(class, EffectSource::Sandbox)));
        assert_eq!(hints(EffectClass::Read), json!({"readOnlyHint": true}));
        assert_eq!(
            hints(EffectClass::Idempotent),
            json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true})
        );
        let write = json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false});
        assert_eq!(hints(EffectClass::Write), write);
        assert_eq!(
            json!(annotations(Effect::of_untrusted(
                EffectClass::Write,
                Some(EffectClass::Read)
            ))),
            write,
            "the claim of an untrusted author is not accepted"
        );
    }
}
