//! The idempotency keys of the calls of an interrupted run.

use std::collections::HashMap;

use crate::event::{Event, RecordedStart, TraceEntry};
use toolwit_core::{Arguments, ToolId};

/// The idempotency keys of the calls that began in an interrupted run, each with the tool and the arguments of its call.
///
/// If a tool runs again, the calls that it makes have the ids of its earlier calls, in their order. But it can make other calls
/// than before, and a service must not take one of these for the earlier call with the same id.
pub(super) struct EarlierKeys(HashMap<String, (ToolId, Arguments)>);

impl EarlierKeys {
    /// Returns the keys of the last run in these entries. Returns no keys if the last run ended.
    pub(super) fn of(entries: &[TraceEntry]) -> Self {
        let mut keys = HashMap::new();
        for entry in entries {
            match &entry.event {
                Event::TurnStarted { .. } | Event::Finished { .. } if entry.origin.parent_call.is_none() => {
                    keys.clear()
                }
                Event::ToolStarted { tool, start, .. } => {
                    keys.extend(start.as_deref().map(|start| key_of(tool, start)))
                }
                Event::NestedCallStarted(call) => {
                    keys.extend(call.start.as_ref().map(|start| key_of(&call.tool, start)));
                }
                _ => {}
            }
        }
        Self(keys)
    }

    /// Returns `key`, or `key` with a number if an earlier call with another tool or other arguments has it.
    pub(super) fn key_for(&self, key: String, tool: &ToolId, arguments: &Arguments) -> String {
        let is_same_call = |earlier: &(ToolId, Arguments)| earlier.0 == *tool && earlier.1 == *arguments;
        let is_usable = |key: &String| self.0.get(key).is_none_or(is_same_call);
        let numbered_keys = (2_u32..).map(|number| format!("{key}~{number}"));
        let usable_key = std::iter::once(key.clone()).chain(numbered_keys).find(is_usable);
        usable_key.unwrap_or(key)
    }
}

/// Returns the key of a call that started, with its tool and its arguments.
fn key_of(tool: &ToolId, start: &RecordedStart) -> (String, (ToolId, Arguments)) {
    (start.key.clone(), (tool.clone(), start.arguments.clone()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::NestedCallStart;
    use toolwit_core::{Effect, EffectClass, EffectSource, Origin};

    fn arguments(order: &str) -> Arguments {
        json!({ "order": order }).as_object().unwrap().clone()
    }

    fn started(sequence: u64, key: &str, order: &str) -> TraceEntry {
        let effect = Effect::new(EffectClass::Idempotent, EffectSource::Author);
        let start = RecordedStart::new("digest", arguments(order), effect, key);
        let call = NestedCallStart {
            id: "call_1/1".to_owned(),
            parent: "call_1".to_owned(),
            number: 1,
            caller: ToolId::native("relay"),
            tool: ToolId::native("charge"),
            start: Some(start),
        };
        TraceEntry::now(sequence, Event::NestedCallStarted(Box::new(call)), Origin::default())
    }

    // accept: 133
    #[test]
    fn a_key_is_reused_only_for_an_equal_call() {
        let keys = EarlierKeys::of(&[started(0, "s/call_1/1", "A"), started(1, "s/call_1/1~2", "B")]);
        let key = |order| keys.key_for("s/call_1/1".to_owned(), &ToolId::native("charge"), &arguments(order));
        assert_eq!(
            [key("A"), key("B"), key("C")],
            ["s/call_1/1", "s/call_1/1~2", "s/call_1/1~3"]
        );
        let refund = keys.key_for("s/call_1/1".to_owned(), &ToolId::native("refund"), &arguments("A"));
        assert_eq!(refund, "s/call_1/1~3");
    }
}
