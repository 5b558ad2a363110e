#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Messages;
use crate::client::Dialect;
use crate::client::testing::{BLOCK_ISSUER, assert_cuts_do_not_matter, read, stream};
use crate::http::{AttemptFailure, ResponseMode};
use toolwit_agent::model::{
    ChatOptions, ChatRequest, ChatResponse, DeclaredTool, FinishReason, ModelError, TokenUsage, ToolChoice,
};
use toolwit_core::{Message, Picture, ToolCall, ToolDefinition, ToolId, ToolName};

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn message_start() -> Value {
    json!({"type": "message_start", "message": {"content": [], "usage": {
        "input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5, "output_tokens": 1,
    }}})
}

fn message_end(reason: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 40}}),
        json!({"type": "message_stop"}),
    ]
}

/// Returns the events of a response with signed thinking, a text, redacted thinking and a call.
fn events() -> Vec<Value> {
    let mut events = vec![
        message_start(),
        json!({"type": "ping"}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Let me "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "see."})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "I löök."})),
        stop(1),
        start(2, json!({"type": "redacted_thinking", "data": "x"})),
        stop(2),
        start(
            3,
            json!({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}),
        ),
        delta(3, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{\"at\": "})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "1}"})),
        stop(3),
        json!({"type": "something_new", "index": 9}),
    ];
    events.extend(message_end("tool_use"));
    events
}

fn read_events(events: &[Value]) -> Result<ChatResponse, AttemptFailure> {
    read::<Messages>(stream(events))
}

fn assert_complete(response: &ChatResponse) {
    assert_eq!(
        (response.content.as_str(), response.reasoning.as_str()),
        ("I löök.", "Let me see.")
    );
    let call = &response.tool_calls[0];
    assert_eq!((&*call.id, &*call.name), ("toolu_1", "look"));
    assert_eq!(
        serde_json::from_str::<Value>(&call.arguments).unwrap(),
        json!({"at": 1})
    );
    assert_eq!(
        (&response.finish, response.stop_reason.as_deref()),
        (&FinishReason::ToolCalls, Some("tool_use"))
    );
    assert_eq!(response.usage, TokenUsage::new(115, 100, 40).with_cache_write(5));
    let blocks: Vec<_> = response
        .blocks
        .iter()
        .map(|block| (&*block.issuer, block.data.clone()))
        .collect();
    let thinking = json!({"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"});
    let redacted = json!({"type": "redacted_thinking", "data": "x"});
    assert_eq!(blocks, [(BLOCK_ISSUER, thinking), (BLOCK_ISSUER, redacted)]);
}

// attack: F10, accept: 10
#[test]
fn a_stream_and_a_document_are_read_as_the_same_response() {
    assert_complete(&read_events(&events()).unwrap());
    let document = json!({"type": "message", "stop_reason": "tool_use", "content": [
        {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
        {"type": "text", "text": "I löök."},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": 1}},
    ], "usage": {
        "input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5, "output_tokens": 40,
    }});
    assert_complete(&read::<Messages>(document.to_string()).unwrap());
}

#[test]
fn thinking_without_a_signature_is_reasoning_and_not_sent_back() {
    let mut events = vec![
        start(0, json!({"type": "thinking", "thinking": "Hm."})),
        stop(0),
        start(1, json!({"type": "thinking", "thinking": " So.", "signature": "x"})),
    ];
    events.extend(message_end("end_turn"));
    let response = read_events(&events).unwrap();
    assert_eq!(response.reasoning, "Hm. So.");
    assert_eq!(
        response.blocks,
        [],
        "neither a block without a signature nor a block without an end is sent back"
    );
}

// attack: F6
#[test]
fn the_bytes_of_a_stream_may_be_cut_anywhere() {
    assert_cuts_do_not_matter::<Messages>(stream(&events()[..9]).as_bytes());
    assert_cuts_do_not_matter::<Messages>(stream(&events()[12..]).as_bytes());
}

// attack: F6
#[test]
fn an_end_mark_of_another_api_ends_the_response() {
    let body = stream(&[
        message_start(),
        start(0, json!({"type": "text", "text": "hi"})),
        stop(0),
    ]);
    let end = stream(&message_end("end_turn")[..1]);
    let response = read::<Messages>(format!("{body}{end}event: data\ndata: [DONE]\n\n")).unwrap();
    assert_eq!((response.content.as_str(), response.finish), ("hi", FinishReason::Stop));
}

// attack: F10
#[test]
fn a_second_start_of_the_message_continues_it() {
    let call = |id: &str| {
        start(
            0,
            json!({"type": "tool_use", "id": id, "name": "look", "input": {"n": 1}}),
        )
    };
    let mut events = vec![message_start(), call("a"), stop(0), message_start(), call("b"), stop(0)];
    events.extend(message_end("tool_use"));
    let calls = read_events(&events).unwrap().tool_calls;
    let calls: Vec<_> = calls.iter().map(|call| (&*call.id, &*call.arguments)).collect();
    assert_eq!(calls, [("a", "{\"n\":1}"), ("b", "{\"n\":1}")]);
}

#[test]
fn another_message_replaces_the_first_one_or_is_an_error_once_a_part_was_read() {
    let with_id = |id: &str| json!({"type": "message_start", "message": {"id": id, "content": [], "usage": {}}});
    let call = |id: &str| start(0, json!({"type": "tool_use", "id": id, "name": "look", "input": {}}));
    let text = start(1, json!({"type": "text", "text": "hi"}));
    let mut restarted = vec![with_id("m1"), call("a"), with_id("m2"), call("b"), stop(0)];
    restarted.extend(message_end("tool_use"));
    let calls = read_events(&restarted).unwrap().tool_calls;
    assert_eq!(calls.iter().map(|call| &*call.id).collect::<Vec<_>>(), ["b"]);
    let mut repeated = vec![with_id("m1"), text.clone(), with_id("m1")];
    repeated.extend(message_end("end_turn"));
    assert_eq!(read_events(&repeated).unwrap().content, "hi");
    let failure = read_events(&[with_id("m1"), text, with_id("m2")]).unwrap_err();
    assert!(
        matches!(&failure, AttemptFailure::Permanent(ModelError::Malformed { message }) if message.contains("another response")),
        "{failure:?}"
    );
}

#[test]
fn blocks_without_an_end_are_complete_at_the_end_of_the_message() {
    let call = |id: &str, number: i32| {
        start(
            0,
            json!({"type": "tool_use", "id": id, "name": "look", "input": {"n": number}}),
        )
    };
    let thinking = start(1, json!({"type": "thinking", "thinking": "Hm", "signature": "c2ln"}));
    let mut events = vec![message_start(), call("a", 1), call("b", 2), thinking];
    events.extend(message_end("tool_use"));
    for events in [&events[..], &events[..events.len() - 1]] {
        let response = read_events(events).unwrap();
        let calls = response.tool_calls.iter();
        let calls: Vec<_> = calls.map(|call| (&*call.id, &*call.arguments)).collect();
        assert_eq!(calls, [("a", "{\"n\":1}"), ("b", "{\"n\":2}")]);
        assert_eq!(response.blocks, [], "a block without an end may be incomplete");
    }
}

#[test]
fn pictures_are_blocks_of_their_messages() {
    let picture = Picture::from_bytes(b"GIF89a").unwrap();
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lGODlh"}});
    let call = |id: &str| ToolCall {
        id: id.to_owned(),
        name: "look".to_owned(),
        arguments: "{}".to_owned(),
    };
    let messages = [
        Message::user("see").with_pictures(vec![picture.clone()]),
        Message::assistant("", vec![call("a"), call("b")]),
        Message::tool(&call("a"), "seen", false).with_pictures(vec![picture.clone()]),
        Message::tool(&call("b"), "failed", true).with_pictures(vec![picture]),
    ];
    let sent = body(&messages, &[], &ChatOptions::default());
    assert_eq!(
        sent["messages"][0]["content"],
        json!([{"type": "text", "text": "see"}, image])
    );
    let results = &sent["messages"][2]["content"];
    assert_eq!(results[0]["content"], json!([{"type": "text", "text": "seen"}, image]));
    assert_eq!(
        results[1]["content"],
        json!([{"type": "text", "text": "failed"}, image])
    );
    assert_eq!(results[1].get("is_error"), None, "the API accepts only text in errors");
}

// attack: F5
#[test]
fn a_stream_with_an_error_or_without_an_end_fails() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let failure = read_events(&[message_start(), overloaded]).unwrap_err();
    assert!(matches!(failure, AttemptFailure::Transient { .. }), "{failure:?}");
    let interrupted = read_events(&events()[..12]).unwrap_err();
    assert_eq!(interrupted, AttemptFailure::interrupted());
}

// attack: F1
#[test]
fn a_truncated_call_keeps_its_arguments_incomplete() {
    let mut events = vec![
        start(0, json!({"type": "tool_use", "id": "a", "name": "f", "input": {}})),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{\"at"})),
    ];
    events.extend(message_end("max_tokens"));
    let response = read_events(&events).unwrap();
    assert_eq!(
        (&*response.tool_calls[0].arguments, response.finish),
        ("{\"at", FinishReason::Length)
    );
    let mut before_arguments = vec![
        start(0, json!({"type": "tool_use", "id": "a", "name": "f", "input": {}})),
        stop(0),
    ];
    before_arguments.extend(message_end("max_tokens"));
    assert_eq!(read_events(&before_arguments).unwrap().tool_calls[0].arguments, "");
}

// attack: F2
#[test]
fn an_empty_turn_a_refusal_and_a_call_without_arguments_are_read() {
    assert_eq!(read_events(&message_end("end_turn")).unwrap().content, "");
    assert_eq!(
        read_events(&message_end("refusal")).unwrap().finish,
        FinishReason::Refusal
    );
    assert_eq!(
        read_events(&message_end("pause_turn")).unwrap().finish,
        FinishReason::Paused
    );
    let mut events = vec![
        start(0, json!({"type": "tool_use", "id": "a", "name": "f", "input": {}})),
        stop(0),
    ];
    events.extend(message_end("tool_use"));
    assert_eq!(read_events(&events).unwrap().tool_calls[0].arguments, "{}");
}

fn body(messages: &[Message], tools: &[DeclaredTool], options: &ChatOptions) -> Value {
    let cancel = CancellationToken::new();
    let request = ChatRequest::new(messages, tools, options, &cancel);
    Messages::default().body("claude", request, BLOCK_ISSUER, ResponseMode::Streaming)
}

// accept: 9
#[test]
fn received_blocks_executed_calls_and_results_are_sent_back() {
    let received = read_events(&events()).unwrap();
    let mut calls = received.tool_calls.clone();
    // The arguments of a call may be changed before the call is executed.
    calls[0].arguments = "{\"at\":2}".to_owned();
    let second = ToolCall {
        id: "functions.look:1".to_owned(),
        name: "look".to_owned(),
        arguments: "{}".to_owned(),
    };
    // The API requires an object.
    let third = ToolCall {
        id: "toolu_3".to_owned(),
        arguments: "[]".to_owned(),
        ..second.clone()
    };
    calls.extend([second.clone(), third]);
    let history = [
        Message::system("be brief"),
        Message::user("hi"),
        Message::assistant(received.content, calls.clone()).with_blocks(received.blocks),
        Message::tool(&calls[0], "found", false),
        Message::tool(&second, "no", true),
        Message::user("and?"),
    ];
    let sent = body(&history, &[], &ChatOptions::default());
    let second_id = sent["messages"][1]["content"][4]["id"].clone();
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
            {"type": "text", "text": "I löök."},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": 2}},
            {"type": "tool_use", "id": second_id, "name": "look", "input": {}},
            {"type": "tool_use", "id": "toolu_3", "name": "look", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"},
            {"type": "tool_result", "tool_use_id": second_id, "content": "no", "is_error": true},
            {"type": "text", "text": "and?", "cache_control": {"type": "ephemeral"}},
        ]},
    ]);
    assert_eq!(sent["messages"], expected);
    assert!(
        second_id.as_str().unwrap().starts_with("call_"),
        "the API refuses ids with a dot or a colon"
    );
    let expected_system = json!([{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}]);
    assert_eq!(sent["system"], expected_system);
}

// accept: 10
#[test]
fn tools_and_options_are_in_the_format_of_the_api() {
    let tool = DeclaredTool {
        name: ToolName::parse("add").unwrap(),
        definition: Arc::new(ToolDefinition::new(
            ToolId::native("add"),
            "add",
            "Adds.",
            json!({"anyOf": [{}]}),
        )),
    };
    let options = ChatOptions {
        tool_choice: ToolChoice::Required,
        max_tokens: Some(9),
        ..ChatOptions::default()
    };
    let sent = body(&[Message::user("hi")], &[tool], &options);
    let schema = json!({"type": "object", "properties": {}});
    assert_eq!(
        sent["tools"],
        json!([{"name": "add", "description": "Adds.", "input_schema": schema}])
    );
    assert_eq!(sent["tool_choice"], json!({"type": "any"}));
    assert_eq!((&sent["max_tokens"], &sent["stream"]), (&json!(9), &json!(true)));
    let without_tools = body(&[Message::user("hi")], &[], &options);
    assert!(without_tools.get("tool_choice").is_none() && without_tools.get("tools").is_none());
}
