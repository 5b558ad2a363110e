//! The idempotency keys of the calls of an interrupted run.

use std::collections::HashMap;

use crate::event::{Event, RecordedStart, TraceEntry};
use toolwit_core::{Arguments, ToolId};

/// The idempotency keys of the calls that began in an interrupted run, by the ids of the calls.
///
/// A call that runs again has its earlier key, also in a fork of its session. If a tool runs again, the calls that it makes have
/// the ids of its earlier calls, in their order. But it can make other calls than before, and a service must not take one of
/// these for the earlier call with the same id.
pub(super) struct EarlierKeys(HashMap<String, Vec<KeyedCall>>);

/// A call that began, with its idempotency key.
struct KeyedCall {
    key: String,
    tool: ToolId,
    /// The arguments, without secrets.
    arguments: Arguments,
}

impl EarlierKeys {
    /// Returns the keys of the last run in these entries. Returns no keys if the last run ended.
    pub(super) fn of(entries: &[TraceEntry]) -> Self {
        let mut keys = Self(HashMap::new());
        for entry in entries {
            match &entry.event {
                Event::TurnStarted { .. } | Event::Finished { .. } if entry.origin.parent_call.is_none() => {
                    keys.0.clear();
                }
                Event::ToolStarted { id, tool, start, .. } => keys.add(id.clone(), tool, start.as_deref()),
                Event::NestedCallStarted(call) => keys.add(call.ids().0, &call.tool, call.start.as_ref()),
                _ => {}
            }
        }
        keys
    }

    fn add(&mut self, id: String, tool: &ToolId, start: Option<&RecordedStart>) {
        self.0.entry(id).or_default().extend(start.map(|start| KeyedCall {
            key: start.key.clone(),
            tool: tool.clone(),
            arguments: start.arguments.clone(),
        }));
    }

    /// Returns the key of an equal earlier call with this id. Without one, returns `new_key`, with a number if another call has
    /// this key.
    pub(super) fn key_for(&self, id: &str, new_key: String, tool: &ToolId, arguments: &Arguments) -> String {
        let earlier = self.0.get(id).map_or(&[][..], Vec::as_slice);
        let is_same_call = |call: &&KeyedCall| call.tool == *tool && call.arguments == *arguments;
        if let Some(same) = earlier.iter().find(is_same_call) {
            return same.key.clone();
        }
        let is_unused = |key: &String| earlier.iter().all(|call| call.key != *key);
        let numbered_keys = (2_u32..).map(|number| format!("{new_key}~{number}"));
        let unused_key = std::iter::once(new_key.clone()).chain(numbered_keys).find(is_unused);
        unused_key.unwrap_or(new_key)
    }
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
        let key_in = |session: &str, tool, order| {
            let new_key = format!("{session}/call_1/1");
            keys.key_for("call_1/1", new_key, &ToolId::native(tool), &arguments(order))
        };
        let key = |order| key_in("s", "charge", order);
        assert_eq!(
            [key("A"), key("B"), key("C")],
            ["s/call_1/1", "s/call_1/1~2", "s/call_1/1~3"]
        );
        assert_eq!(key_in("s", "refund", "A"), "s/call_1/1~3");
        // A fork of the session repeats the call with the key of the first session.
        assert_eq!(key_in("fork", "charge", "A"), "s/call_1/1");
        assert_eq!(key_in("fork", "charge", "C"), "fork/call_1/1");
    }
}
