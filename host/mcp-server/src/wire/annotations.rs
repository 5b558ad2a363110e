//! Annotations of tools, which state the effect of a call.

use rmcp::model::ToolAnnotations;
use toolwit::tool::{Effect, EffectClass};

/// Returns the annotations for the effect of a tool. A tool with an unknown effect counts as destructive, which is also
/// what the protocol assumes.
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
    fn only_a_read_is_announced_as_read_only() {
        let hints = |class| json!(annotations(Effect::new(class, EffectSource::Sandbox)));
        assert_eq!(hints(EffectClass::Read), json!({"readOnlyHint": true}));
        assert_eq!(
            hints(EffectClass::Idempotent),
            json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true})
        );
        let unknown = json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false});
        assert_eq!(hints(EffectClass::Write), unknown);
        assert_eq!(
            json!(annotations(Effect::of_untrusted(
                EffectClass::Write,
                Some(EffectClass::Read)
            ))),
            unknown
        );
    }
}
