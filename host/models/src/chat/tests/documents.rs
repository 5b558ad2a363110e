//! Complete responses.

use proptest::prelude::*;

use super::*;
use crate::client::testing::{read, read_pieces};
use crate::http::AttemptFailure;
use toolwit_agent::model::TokenUsage;
use toolwit_core::ToolCall;

fn parse(body: impl AsRef<[u8]>) -> Result<ChatResponse, AttemptFailure> {
    read::<ChatCompletions>(body)
}

/// Parses a complete response with this message.
fn parse_message(message: Value) -> ChatResponse {
    parse(json!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string()).unwrap()
}

fn call(id: Value, arguments: Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}})
}

/// Parses a malformed body, and returns the message of the error.
fn malformed_message(body: impl AsRef<[u8]>) -> String {
    match parse(body) {
        Err(AttemptFailure::Permanent(ModelError::Malformed { message })) => message,
        other => panic!("{other:?}"),
    }
}

// accept: 10, accept: 11
#[test]
fn a_complete_response_is_parsed_with_text_calls_and_usage() {
    let response = parse(include_str!("fixtures/calls.json")).unwrap();
    assert_eq!(response.content, "Let me look that customer up.");
    assert_eq!(response.finish, FinishReason::ToolCalls);
    assert_eq!(response.usage, TokenUsage::new(1_205, 1_024, 38));
    let calls: Vec<_> = response
        .tool_calls
        .iter()
        .map(|call| (&*call.id, &*call.name, &*call.arguments))
        .collect();
    assert_eq!(
        calls,
        [
            (
                "call_q8Zr3",
                "search_customer",
                "{\"name\": \"John Smith\", \"limit\": 3}"
            ),
            ("call_k1Xw9", "today", "{}"),
        ]
    );
}

// attack: F1
#[test]
fn a_truncated_response_keeps_its_truncated_arguments_and_reason() {
    let response = parse(include_str!("fixtures/cut.json")).unwrap();
    assert_eq!(response.finish, FinishReason::Length);
    assert_eq!(
        response.tool_calls[0].arguments,
        "{\"path\": \"notes.txt\", \"text\": \"The first"
    );
}

// attack: F2
#[test]
fn missing_content_is_empty_text() {
    for content in [json!(null), json!(""), json!([]), json!([{"type": "image_url"}])] {
        assert_eq!(
            parse_message(json!({"role": "assistant", "content": content})).content,
            ""
        );
        let with_call = parse_message(json!({"content": content, "tool_calls": [call(json!("a"), json!("{}"))]}));
        assert_eq!((with_call.content.as_str(), with_call.tool_calls.len()), ("", 1));
    }
    assert_eq!(parse_message(json!({})).finish, FinishReason::Stop);
    assert_eq!(parse_message(json!({"tool_calls": null})).content, "");
    assert_eq!(
        parse_message(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})).content,
        "ab"
    );
    let refusal = parse_message(json!({"content": null, "refusal": "I cannot."}));
    assert_eq!(
        (refusal.content.as_str(), refusal.text(), &refusal.finish),
        ("", "I cannot.", &FinishReason::Refusal)
    );
}

#[test]
fn thinking_in_the_content_is_reasoning_and_not_text() {
    let thinking = json!({"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]});
    let response = parse_message(json!({"content": [thinking, {"type": "text", "text": "Yes."}]}));
    assert_eq!(
        (response.reasoning.as_str(), response.content.as_str()),
        ("Hm.", "Yes.")
    );
}

// attack: F3
#[test]
fn arguments_may_be_text_an_object_or_missing() {
    let arguments = |arguments: Value| {
        parse_message(json!({"tool_calls": [call(json!("a"), arguments)]})).tool_calls[0]
            .arguments
            .clone()
    };
    assert_eq!(arguments(json!("{\"a\": 1}")), "{\"a\": 1}");
    assert_eq!(
        arguments(json!({"b": [1], "a": 9_007_199_254_740_993_u64})),
        "{\"b\":[1],\"a\":9007199254740993}"
    );
    for blank in [json!(""), json!(" \n"), json!(null), json!({})] {
        assert_eq!(arguments(blank), "{}");
    }
    let absent = parse_message(json!({"tool_calls": [{"function": {"name": "f"}}]}));
    assert_eq!(absent.tool_calls[0].arguments, "{}");
}

// attack: F9
#[test]
fn missing_and_duplicate_ids_are_replaced_by_unused_ids() {
    let ids = |ids: &[Value], history: &[Message]| {
        let calls: Vec<Value> = ids.iter().map(|id| call(id.clone(), json!("{}"))).collect();
        let body = json!({"choices": [{"message": {"tool_calls": calls}}]}).to_string();
        let response = read_pieces::<ChatCompletions>([body.as_bytes()], history).unwrap();
        response.tool_calls.into_iter().map(|call| call.id).collect::<Vec<_>>()
    };
    assert_eq!(
        ids(&[json!("x"), json!("x"), json!(null), json!("")], &[]),
        ["x", "call_1", "call_2", "call_3"]
    );
    assert_eq!(ids(&[json!(null), json!("call_1")], &[]), ["call_2", "call_1"]);
    let earlier_call = ToolCall {
        id: "call_0".into(),
        name: "f".into(),
        arguments: "{}".into(),
    };
    let history = [
        Message::assistant("", vec![earlier_call.clone()]),
        Message::tool(&earlier_call, "1", false),
    ];
    assert_eq!(ids(&[json!("call_0"), json!("call_1")], &history), ["call_2", "call_1"]);
}

#[test]
fn finish_reasons_are_mapped() {
    let finish = |reason: Value, calls: Value| {
        let body = json!({"choices": [{"message": {"tool_calls": calls}, "finish_reason": reason}]});
        parse(body.to_string()).unwrap().finish
    };
    let one_call = json!([call(json!("a"), json!("{}"))]);
    for reason in [json!("stop"), json!("tool_calls"), json!(null), json!("")] {
        assert_eq!(finish(reason.clone(), json!([])), FinishReason::Stop);
        assert_eq!(finish(reason, one_call.clone()), FinishReason::ToolCalls);
    }
    assert_eq!(finish(json!("length"), one_call), FinishReason::Length);
    assert_eq!(finish(json!("content_filter"), json!([])), FinishReason::ContentFilter);
    assert_eq!(finish(json!("odd"), json!([])), FinishReason::Other("odd".into()));
}

#[test]
fn a_response_with_invalid_token_counts_is_accepted() {
    for usage in [
        json!(null),
        json!([]),
        json!({"prompt_tokens": -1, "completion_tokens": "many"}),
    ] {
        let body = json!({"choices": [{"message": {"content": "hi"}}], "usage": usage});
        assert_eq!(parse(body.to_string()).unwrap().usage, TokenUsage::default());
    }
    let body = json!({"choices": [{"message": {}}], "usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}});
    assert_eq!(parse(body.to_string()).unwrap().usage, TokenUsage::new(9, 4, 0));
}

// attack: F7
#[test]
fn a_body_that_is_not_a_completion_is_malformed() {
    assert_eq!(parse("").unwrap_err(), AttemptFailure::empty());
    assert!(malformed_message("<html></html>").contains("neither a JSON document nor an event"));
    let nested = format!("{{\"choices\": [], \"x\": {}", "[".repeat(100_000));
    for body in [
        "{}",
        "{\"choices\": null}",
        "{\"choices\": [{}]}",
        "[]",
        "{\"choices\": 5}",
        &nested,
    ] {
        malformed_message(body);
    }
}

// attack: F5
#[test]
fn an_error_in_a_document_is_returned() {
    let error_in_document = json!({"error": {"message": "slow down", "code": 429}}).to_string();
    assert!(matches!(
        parse(error_in_document),
        Err(AttemptFailure::Transient { status: Some(429), .. })
    ));
    let error_in_choice =
        json!({"choices": [{"message": {"content": ""}, "error": {"message": "gone", "code": 502}}]}).to_string();
    assert!(matches!(
        parse(error_in_choice),
        Err(AttemptFailure::Transient { status: Some(502), .. })
    ));
    let error_as_text = json!({"error": "model `x` not found"}).to_string();
    let Err(AttemptFailure::Permanent(ModelError::Refused { message, .. })) = parse(error_as_text) else {
        panic!("an error without a code is permanent");
    };
    assert_eq!(message, "model `x` not found");
    let null_error = json!({"error": null, "choices": [{"message": {"content": "fine"}}]}).to_string();
    assert_eq!(parse(null_error).unwrap().content, "fine");
}

proptest! {
    // attack: F10
    #[test]
    fn parsing_a_body_never_panics(body in prop::collection::vec(any::<u8>(), 0..60), cut in 0usize..600) {
        let _ = parse(body);
        let complete = include_bytes!("fixtures/calls.json");
        let _ = parse(&complete[..cut.min(complete.len())]);
    }
}
