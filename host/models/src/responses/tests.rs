#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Responses;
use crate::client::Dialect;
use crate::client::testing::{ISSUER, assert_cuts_do_not_matter, read, stream};
use crate::http::{AttemptFailure, ResponseMode};
use toolwit_agent::model::{
    ChatOptions, ChatRequest, ChatResponse, DeclaredTool, FinishReason, ModelError, TokenUsage,
};
use toolwit_core::{Message, ToolCall, ToolDefinition, ToolId, ToolName};

fn event(kind: &str, index: u64, key: &str, value: Value) -> Value {
    json!({"type": format!("response.{kind}"), "output_index": index, key: value})
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "status": "completed", "encrypted_content": "x",
        "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}]})
}

fn message() -> Value {
    json!({"type": "message", "id": "msg_1", "content": [
        {"type": "output_text", "text": "I "}, {"type": "output_text", "text": "löök."}
    ]})
}

fn call() -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{\"at\": 1}"})
}

fn response(output: Value) -> Value {
    json!({"status": "completed", "error": null, "incomplete_details": null, "output": output, "usage": {
        "input_tokens": 20, "input_tokens_details": {"cached_tokens": 16},
        "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 4},
    }})
}

fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": response(output)})
}

fn pieces() -> Vec<Value> {
    let summary = |part: u64, text: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": part, "delta": text});
    let mut added = call();
    added["arguments"] = json!("");
    vec![
        json!({"type": "response.created", "response": {"status": "in_progress", "output": []}}),
        summary(0, "Fir"),
        summary(0, "st."),
        summary(1, "Then."),
        event("output_item.done", 0, "item", reasoning()),
        event("output_text.delta", 1, "delta", json!("I lö")),
        event("output_text.delta", 1, "delta", json!("ök.")),
        event("output_text.done", 1, "text", json!("I löök.")),
        event("output_item.done", 1, "item", message()),
        event("output_item.added", 2, "item", added),
        event("function_call_arguments.delta", 2, "delta", json!("{\"at\"")),
        event("function_call_arguments.delta", 2, "delta", json!(": 1}")),
        event("output_item.done", 2, "item", call()),
        event("something_new", 7, "item", json!(1)),
    ]
}

fn parse(events: &[Value]) -> Result<ChatResponse, AttemptFailure> {
    read::<Responses>(stream(events))
}

// attack: F9
#[test]
fn an_item_that_moved_in_the_final_response_is_read_once() {
    let mut events = pieces();
    // A server that does not return the reasoning again.
    events.push(completed(json!([message(), call()])));
    let response = parse(&events).unwrap();
    assert_eq!(response.content, "I löök.");
    let calls: Vec<_> = response.tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(calls, ["call_1"], "a call does not run twice");
}

fn assert_complete(response: &ChatResponse) {
    assert_eq!(
        (response.content.as_str(), response.reasoning.as_str()),
        ("I löök.", "First.\n\nThen.")
    );
    let calls = response.tool_calls.iter();
    let calls: Vec<_> = calls.map(|call| (&*call.id, &*call.name, &*call.arguments)).collect();
    assert_eq!(calls, [("call_1", "look", "{\"at\": 1}")]);
    assert_eq!(
        (&response.finish, response.stop_reason.as_deref()),
        (&FinishReason::ToolCalls, Some("completed"))
    );
    assert_eq!(response.usage, TokenUsage::new(20, 16, 9).with_reasoning(4));
    let mut item = reasoning();
    item.as_object_mut().unwrap().shift_remove("status");
    assert_eq!((response.blocks.len(), &response.blocks[0].data), (1, &item));
}

// attack: F4, accept: 10
#[test]
fn pieces_complete_items_and_the_final_response_give_the_same() {
    let output = json!([reasoning(), message(), call()]);
    assert_complete(&read::<Responses>(response(output.clone()).to_string()).unwrap());
    let streamed = |events: Vec<Value>, last: Value| parse(&[events, vec![last]].concat()).unwrap();
    assert_complete(&streamed(pieces(), completed(output.clone())));
    assert_complete(&streamed(pieces(), completed(json!([]))));
    assert_complete(&streamed(vec![], completed(output.clone())));
    assert_complete(&streamed(pieces()[..6].to_vec(), completed(output)));
}

// attack: F6
#[test]
fn the_bytes_of_a_stream_may_be_cut_anywhere() {
    let body = stream(&[pieces()[5..7].to_vec(), vec![completed(json!([]))]].concat());
    assert_cuts_do_not_matter::<Responses>(body.as_bytes());
}

// attack: F5
#[test]
fn failures_and_incomplete_responses_are_told_apart() {
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "output": [],
        "error": {"code": "server_error", "message": "sorry"}}});
    assert!(matches!(
        parse(&[failed]).unwrap_err(),
        AttemptFailure::Transient { .. }
    ));
    let error = json!({"type": "error", "code": "invalid_prompt", "message": "no", "param": null});
    let refused = parse(&[error]).unwrap_err();
    assert!(matches!(refused, AttemptFailure::Permanent(ModelError::Refused { message, .. }) if message == "no"));
    let incomplete = |reason: &str| {
        let mut body = response(json!([message()]));
        body["status"] = json!("incomplete");
        body["incomplete_details"] = json!({"reason": reason});
        parse(&[json!({"type": "response.incomplete", "response": body})]).unwrap()
    };
    let length = incomplete("max_output_tokens");
    assert_eq!(
        (length.finish, length.stop_reason.as_deref()),
        (FinishReason::Length, Some("max_output_tokens"))
    );
    assert_eq!(incomplete("content_filter").finish, FinishReason::ContentFilter);
    assert_eq!(parse(&pieces()).unwrap_err(), AttemptFailure::interrupted());
    let refusal = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}]);
    let refused = parse(&[completed(refusal)]).unwrap();
    assert_eq!((refused.text(), &refused.finish), ("I cannot.", &FinishReason::Refusal));
}

// accept: 9
#[test]
fn requests_have_strict_tools_and_the_items_of_the_history() {
    let received = parse(&[pieces(), vec![completed(json!([]))]].concat()).unwrap();
    let calls = received.tool_calls.clone();
    let history = [
        Message::system("be brief"),
        Message::user("hi"),
        Message::assistant(received.content, calls.clone()).with_blocks(received.blocks),
        Message::tool(&calls[0], "found", false),
    ];
    let schema = json!({"type": "object", "properties": {"at": {"type": "integer"}}});
    let tool = |name: &str, schema: Value| DeclaredTool {
        name: ToolName::parse(name).unwrap(),
        definition: Arc::new(ToolDefinition::new(ToolId::native(name), name, "Looks.", schema)),
    };
    let tools = [tool("look", schema), tool("bad", json!(true))];
    let (options, cancel) = (ChatOptions::default(), CancellationToken::new());
    let dialect = Responses::default();
    let request = ChatRequest::new(&history, &tools, &options, &cancel);
    let sent = dialect.body("gpt-5", request, ISSUER, ResponseMode::Complete);
    let item = {
        let mut item = reasoning();
        item.as_object_mut().unwrap().shift_remove("status");
        item
    };
    assert_eq!(
        sent["input"],
        json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
            item,
            {"role": "assistant", "content": "I löök."},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{\"at\": 1}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "found"},
        ])
    );
    assert_eq!(
        (&sent["store"], &sent["include"]),
        (&json!(false), &json!(["reasoning.encrypted_content"]))
    );
    assert_eq!(
        (&sent["tools"][0]["strict"], &sent["tools"][1]["strict"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(sent["tools"][0]["parameters"]["required"], json!(["at"]));
    let elsewhere = dialect.body("gpt-4o", request, "responses:elsewhere", ResponseMode::Complete);
    assert!(elsewhere.get("include").is_none() && !elsewhere.to_string().contains("encrypted"));
    let mut call = ToolCall {
        arguments: "{\"at\":null}".to_owned(),
        ..calls[0].clone()
    };
    dialect.restore_arguments(&mut call, &tools[0]);
    assert_eq!(call.arguments, "{}");
}
