//! Property tests of the readers of every API.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::anthropic::Messages;
use crate::chat::ChatCompletions;
use crate::client::Dialect;
use crate::client::testing::{read, read_pieces, stream};
use crate::gemini::GenerateContent;
use crate::responses::Responses;

/// Names of fields and types of all APIs, so that arbitrary JSON reaches the code that reads them.
const WORDS: &[&str] = &[
    "args",
    "arguments",
    "call_id",
    "candidates",
    "choices",
    "content",
    "content_block",
    "content_block_delta",
    "content_block_start",
    "content_block_stop",
    "delta",
    "error",
    "finishReason",
    "finish_reason",
    "function",
    "functionCall",
    "function_call",
    "id",
    "index",
    "input",
    "input_json_delta",
    "item",
    "message",
    "message_delta",
    "name",
    "output",
    "output_index",
    "output_text",
    "partial_json",
    "parts",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "refusal",
    "response",
    "response.completed",
    "response.function_call_arguments.delta",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "signature",
    "stop",
    "stop_reason",
    "summary",
    "text",
    "text_delta",
    "thinking",
    "thinking_delta",
    "thought",
    "thoughtSignature",
    "tool_calls",
    "tool_use",
    "type",
    "usage",
    "usageMetadata",
];

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(WORDS).prop_map(str::to_owned)
}

fn any_event() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        word().prop_map(Value::from),
        ".{0,4}".prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(word(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    // Most events of the APIs have a type, an index and a content.
    (word(), 0u64..3, tree.clone(), tree.clone(), tree).prop_map(|(kind, index, one, two, three)| {
        json!({
            "type": kind, "index": index, "output_index": index,
            "delta": one, "content_block": two, "item": two, "response": three, "message": two,
            "choices": [{"delta": one, "message": one, "finish_reason": three}],
            "candidates": [{"content": {"parts": [one, two]}, "finishReason": "STOP"}],
            "content": [two, one], "output": [two, one], "usage": three, "usageMetadata": three,
        })
    })
}

/// Checks that a body in two pieces gives the same response as in one, and that no event as a document panics.
fn check<D: Dialect>(events: &[Value], cut: usize) -> Result<(), TestCaseError> {
    let body = stream(events);
    let uncut = read::<D>(&body);
    let (head, tail) = body.as_bytes().split_at(cut.min(body.len()));
    prop_assert_eq!(read_pieces::<D>([head, tail], &[]), uncut);
    for event in events {
        let _ = read::<D>(event.to_string());
    }
    Ok(())
}

proptest! {
    // attack: F6, attack: F10
    #[test]
    fn no_event_panics_and_no_cut_changes_the_response(events in prop::collection::vec(any_event(), 0..5), cut in 0usize..3_000) {
        check::<ChatCompletions>(&events, cut)?;
        check::<Messages>(&events, cut)?;
        check::<Responses>(&events, cut)?;
        check::<GenerateContent>(&events, cut)?;
    }

    // attack: F6
    #[test]
    fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..200), prefix in prop::sample::select(vec!["", "{", "[", "data: {"])) {
        let body = [prefix.as_bytes(), &body].concat();
        let uncut = read::<Messages>(&body);
        prop_assert_eq!(read_pieces::<Messages>(body.chunks(1), &[]), uncut);
        let _ = read::<ChatCompletions>(&body);
        let _ = read::<Responses>(&body);
        let _ = read::<GenerateContent>(&body);
    }
}
