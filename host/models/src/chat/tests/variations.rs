//! Variations of the API in which servers differ.

use super::super::OpenAiHistory;
use super::super::history::ResultPictures;
use super::streams::{call_delta, chunk, parse};
use super::*;
use crate::client::CallIdForm;
use crate::client::testing::{BLOCK_ISSUER, read};
use crate::http::AttemptFailure;
use toolwit_agent::model::TokenUsage;

#[test]
fn a_stream_that_the_provider_ends_with_an_error_fails() {
    for reason in ["error", "insufficient_system_resource"] {
        let failure = parse(&[chunk(json!({"content": "Hel"}), Some(reason))]).unwrap_err();
        assert!(matches!(failure, AttemptFailure::Transient { .. }), "{failure:?}");
    }
}

#[test]
fn reasons_are_recognized_in_each_spelling_and_counts_in_each_place() {
    let calls = chunk(call_delta(0, Some("a"), Some("f"), "null"), None);
    for reason in ["tool_call", "tool-calls", "TOOL_USE", "stop", "Completed"] {
        let response = parse(&[calls.clone(), chunk(json!({}), Some(reason))]).unwrap();
        assert_eq!(
            (&*response.tool_calls[0].arguments, response.finish),
            ("{}", FinishReason::ToolCalls),
            "{reason}"
        );
    }
    for (reason, finish) in [
        ("MAX_TOKENS", FinishReason::Length),
        ("safety", FinishReason::ContentFilter),
    ] {
        assert_eq!(
            parse(&[chunk(json!({"content": "x"}), Some(reason))]).unwrap().finish,
            finish
        );
    }
    let counts = json!({"prompt_tokens": 3, "completion_tokens": 1});
    let mut in_choice = chunk(json!({"content": "x"}), Some("stop"));
    in_choice["choices"][0]["usage"] = counts.clone();
    let mut in_own_field = chunk(json!({"content": "x"}), Some("stop"));
    in_own_field["x_groq"] = json!({"usage": counts});
    for event in [in_choice, in_own_field] {
        assert_eq!(parse(&[event]).unwrap().usage, TokenUsage::new(3, 0, 1));
    }
}

#[test]
fn the_first_choice_is_read_whatever_its_index() {
    let numbered = |index: u64, text: &str, reason: Option<&str>| json!({"choices": [{"index": index, "delta": {"content": text}, "finish_reason": reason}]});
    let response = parse(&[numbered(1, "hi", None), numbered(1, " there", Some("stop"))]).unwrap();
    assert_eq!(response.content, "hi there");
    let response = parse(&[
        numbered(0, "hi", None),
        numbered(1, "no", None),
        numbered(0, "", Some("stop")),
    ])
    .unwrap();
    assert_eq!(response.content, "hi");
    let document = json!({"choices": [{"index": 1, "message": {"content": "hi"}, "finish_reason": "stop"}]});
    assert_eq!(read::<ChatCompletions>(document.to_string()).unwrap().content, "hi");
}

#[test]
fn a_call_in_the_outdated_field_is_read() {
    let piece = |name: Option<&str>, arguments: &str| json!({"function_call": {"name": name, "arguments": arguments}});
    let events = [
        chunk(piece(Some("f"), ""), None),
        chunk(piece(None, "{\"x\":"), None),
        chunk(piece(None, "1}"), None),
        chunk(json!({"function_call": null}), Some("function_call")),
    ];
    let response = parse(&events).unwrap();
    let calls: Vec<_> = response
        .tool_calls
        .iter()
        .map(|call| (&*call.name, &*call.arguments))
        .collect();
    assert_eq!(
        (calls, response.finish),
        (vec![("f", "{\"x\":1}")], FinishReason::ToolCalls)
    );
}

#[test]
fn reasoning_and_signatures_are_sent_back_in_the_fields_in_which_they_arrived() {
    let signature = |text: &str| json!({"google": {"thought_signature": text}});
    let call = |index: u64, id: &str, extra: Value| {
        json!({"tool_calls": [{"index": index, "id": id, "extra_content": extra,
            "function": {"name": "f", "arguments": "{}"}}]})
    };
    let events = [
        chunk(json!({"reasoning": "Hm, "}), None),
        chunk(json!({"reasoning": "so."}), None),
        chunk(call(0, "a", signature("s1")), None),
        chunk(call(1, "b", Value::Null), None),
        chunk(json!({"extra_content": signature("s2")}), Some("tool_calls")),
    ];
    let received = parse(&events).unwrap();
    let message = Message::assistant("", received.tool_calls).with_blocks(received.blocks);
    let sent = |issuer: &str| {
        let pictures = ResultPictures::AfterResults;
        let history = OpenAiHistory::for_provider(&[message.clone()], issuer, CallIdForm::Any, pictures);
        serde_json::to_value(history).unwrap()[0].take()
    };
    let own = sent(BLOCK_ISSUER);
    assert_eq!(own["reasoning"], "Hm, so.");
    assert_eq!(own["tool_calls"][0]["extra_content"], signature("s1"));
    assert_eq!(own["tool_calls"][1].get("extra_content"), None);
    assert_eq!(own["extra_content"], signature("s2"));
    let other = sent("chat:other").to_string();
    assert!(
        !other.contains("reasoning") && !other.contains("extra_content"),
        "{other}"
    );
}
