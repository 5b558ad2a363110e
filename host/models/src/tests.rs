//! Property tests of the response readers of all APIs.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::anthropic::Messages;
use crate::chat::ChatCompletions;
use crate::client::Dialect;
use crate::client::testing::{read, read_pieces, stream};
use crate::gemini::GenerateContent;
use crate::responses::Responses;

/// Names of fields and event types of all APIs. With these words, random JSON reaches the code that reads the fields.
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
    // The random values are in the fields that the events of the APIs have.
    (word(), 0u64..3, tree.clone(), tree.clone(), tree).prop_map(|(event_type, index, first, second, third)| {
        json!({
            "type": event_type, "index": index, "output_index": index,
            "delta": first, "content_block": second, "item": second, "response": third, "message": second,
            "choices": [{"delta": first, "message": first, "finish_reason": third}],
            "candidates": [{"content": {"parts": [first, second]}, "finishReason": "STOP"}],
            "content": [second, first], "output": [second, first], "usage": third, "usageMetadata": third,
        })
    })
}

/// Checks that a stream gives the same response in two pieces as in one. Also reads each event as a complete response, which must
/// not panic.
fn check_reader<D: Dialect>(events: &[Value], cut: usize) -> Result<(), TestCaseError> {
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
    fn no_event_causes_a_panic_and_no_cut_changes_the_response(events in prop::collection::vec(any_event(), 0..5), cut in 0usize..3_000) {
        check_reader::<ChatCompletions>(&events, cut)?;
        check_reader::<Messages>(&events, cut)?;
        check_reader::<Responses>(&events, cut)?;
        check_reader::<GenerateContent>(&events, cut)?;
    }

    // attack: F6
    #[test]
    fn no_bytes_cause_a_panic(body in prop::collection::vec(any::<u8>(), 0..200), prefix in prop::sample::select(vec!["", "{", "[", "data: {"])) {
        let body = [prefix.as_bytes(), &body].concat();
        let uncut = read::<Messages>(&body);
        prop_assert_eq!(read_pieces::<Messages>(body.chunks(1), &[]), uncut);
        let _ = read::<ChatCompletions>(&body);
        let _ = read::<Responses>(&body);
        let _ = read::<GenerateContent>(&body);
    }
}
