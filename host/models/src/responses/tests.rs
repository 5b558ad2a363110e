#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Responses;
use crate::client::Dialect;
use crate::client::testing::{BLOCK_ISSUER, assert_cuts_do_not_matter, read, stream};
use crate::http::{AttemptFailure, ResponseMode};
use toolwit_agent::model::{
    ChatOptions, ChatRequest, ChatResponse, DeclaredTool, FinishReason, ModelError, TokenUsage,
};
use toolwit_core::{Message, Picture, ToolCall, ToolDefinition, ToolId, ToolName};

/// Returns an event about the output item with this index.
fn item_event(event_type: &str, index: u64, key: &str, value: Value) -> Value {
    json!({"type": format!("response.{event_type}"), "output_index": index, key: value})
}

fn reasoning_item() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "status": "completed", "encrypted_content": "x",
        "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}]})
}

/// Returns the provider block of the reasoning item. The API refuses the status of an item in a request.
fn reasoning_block() -> Value {
    let mut item = reasoning_item();
    item.as_object_mut().unwrap().shift_remove("status");
    item
}

fn message_item() -> Value {
    json!({"type": "message", "id": "msg_1", "content": [
        {"type": "output_text", "text": "I "}, {"type": "output_text", "text": "löök."}
    ]})
}

fn call_item() -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{\"at\": 1}"})
}

fn response_body(output: Value) -> Value {
    json!({"status": "completed", "error": null, "incomplete_details": null, "output": output, "usage": {
        "input_tokens": 20, "input_tokens_details": {"cached_tokens": 16},
        "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 4},
    }})
}

fn completed_event(output: Value) -> Value {
    json!({"type": "response.completed", "response": response_body(output)})
}

/// Returns the events of a stream before its final response: three items, first in pieces, then complete.
fn item_events() -> Vec<Value> {
    let summary = |part: u64, text: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": part, "delta": text});
    let mut call_without_arguments = call_item();
    call_without_arguments["arguments"] = json!("");
    vec![
        json!({"type": "response.created", "response": {"status": "in_progress", "output": []}}),
        summary(0, "Fir"),
        summary(0, "st."),
        summary(1, "Then."),
        item_event("output_item.done", 0, "item", reasoning_item()),
        item_event("output_text.delta", 1, "delta", json!("I lö")),
        item_event("output_text.delta", 1, "delta", json!("ök.")),
        item_event("output_text.done", 1, "text", json!("I löök.")),
        item_event("output_item.done", 1, "item", message_item()),
        item_event("output_item.added", 2, "item", call_without_arguments),
        item_event("function_call_arguments.delta", 2, "delta", json!("{\"at\"")),
        item_event("function_call_arguments.delta", 2, "delta", json!(": 1}")),
        item_event("output_item.done", 2, "item", call_item()),
        item_event("something_new", 7, "item", json!(1)),
    ]
}

fn parse(events: &[Value]) -> Result<ChatResponse, AttemptFailure> {
    read::<Responses>(stream(events))
}

// attack: F9
#[test]
fn an_item_that_moved_in_the_final_response_is_read_once() {
    let mut events = item_events();
    // This final response does not contain the reasoning item, so that the later items have other positions.
    events.push(completed_event(json!([message_item(), call_item()])));
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
    assert_eq!(
        (response.blocks.len(), &response.blocks[0].data),
        (1, &reasoning_block())
    );
}

// attack: F4, accept: 10
#[test]
fn deltas_output_items_and_the_final_response_give_the_same_response() {
    let output = json!([reasoning_item(), message_item(), call_item()]);
    assert_complete(&read::<Responses>(response_body(output.clone()).to_string()).unwrap());
    let parse_with = |events: Vec<Value>, final_event: Value| parse(&[events, vec![final_event]].concat()).unwrap();
    assert_complete(&parse_with(item_events(), completed_event(output.clone())));
    assert_complete(&parse_with(item_events(), completed_event(json!([]))));
    assert_complete(&parse_with(vec![], completed_event(output.clone())));
    // These events stop after the first delta of the text. The final response has the full text and the call.
    assert_complete(&parse_with(item_events()[..6].to_vec(), completed_event(output)));
}

#[test]
fn reasoning_parts_are_separated_by_one_blank_line() {
    let part = |index: u64, text: &str| json!({"type": "response.reasoning_text.delta", "output_index": 0, "content_index": index, "delta": text});
    let texts = ["First.", "Then."].map(|text| json!({"type": "reasoning_text", "text": text}));
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": texts});
    let events = [
        part(0, "First."),
        part(1, "Then."),
        item_event("output_item.done", 0, "item", item),
        completed_event(json!([])),
    ];
    assert_eq!(parse(&events).unwrap().reasoning, "First.\n\nThen.");
}

// attack: F6
#[test]
fn the_bytes_of_a_stream_may_be_cut_anywhere() {
    // These events have multi-byte characters.
    let body = stream(&[item_events()[5..7].to_vec(), vec![completed_event(json!([]))]].concat());
    assert_cuts_do_not_matter::<Responses>(body.as_bytes());
}

// attack: F5
#[test]
fn failures_and_incomplete_responses_are_distinguished() {
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "output": [],
        "error": {"code": "server_error", "message": "sorry"}}});
    assert!(matches!(
        parse(&[failed]).unwrap_err(),
        AttemptFailure::Transient { .. }
    ));
    let error = json!({"type": "error", "code": "invalid_prompt", "message": "no", "param": null});
    let failure = parse(&[error]).unwrap_err();
    assert!(matches!(failure, AttemptFailure::Permanent(ModelError::Refused { message, .. }) if message == "no"));
    let incomplete = |reason: &str| {
        let mut body = response_body(json!([message_item()]));
        body["status"] = json!("incomplete");
        body["incomplete_details"] = json!({"reason": reason});
        parse(&[json!({"type": "response.incomplete", "response": body})]).unwrap()
    };
    let truncated = incomplete("max_output_tokens");
    assert_eq!(
        (truncated.finish, truncated.stop_reason.as_deref()),
        (FinishReason::Length, Some("max_output_tokens"))
    );
    assert_eq!(incomplete("content_filter").finish, FinishReason::ContentFilter);
    assert_eq!(parse(&item_events()).unwrap_err(), AttemptFailure::interrupted());
    let output = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}]);
    let refusal = parse(&[completed_event(output)]).unwrap();
    assert_eq!((refusal.text(), &refusal.finish), ("I cannot.", &FinishReason::Refusal));
}

#[test]
fn pictures_are_content_of_messages_and_results() {
    let picture = Picture::from_bytes(b"GIF89a").unwrap();
    let call = ToolCall {
        id: "a".into(),
        name: "look".into(),
        arguments: "{}".into(),
    };
    let history = [
        Message::user("see").with_pictures(vec![picture.clone()]),
        Message::assistant("", vec![call.clone()]),
        Message::tool(&call, "seen", false).with_pictures(vec![picture]),
    ];
    let (options, cancel) = (ChatOptions::default(), CancellationToken::new());
    let request = ChatRequest::new(&history, &[], &options, &cancel);
    let body = Responses::default().body("gpt-5", request, BLOCK_ISSUER, ResponseMode::Complete);
    let image = json!({"type": "input_image", "image_url": "data:image/gif;base64,R0lGODlh"});
    assert_eq!(
        body["input"][0]["content"],
        json!([{"type": "input_text", "text": "see"}, image])
    );
    assert_eq!(
        body["input"][2]["output"],
        json!([{"type": "input_text", "text": "seen"}, image])
    );
}

#[test]
fn another_response_replaces_the_first_one_or_is_an_error_once_a_part_was_read() {
    let created = |id: &str| json!({"type": "response.created", "response": {"id": id}});
    let call_added = item_event("output_item.added", 0, "item", call_item());
    let completed = completed_event(json!([call_item()]));
    let restarted = parse(&[created("r1"), call_added, created("r2"), completed.clone()]).unwrap();
    assert_eq!(restarted.tool_calls.len(), 1);
    let text = item_event("output_text.delta", 0, "delta", json!("hi"));
    assert!(parse(&[created("r1"), text, created("r2"), completed]).is_err());
}

// accept: 9
#[test]
fn requests_have_strict_tools_and_the_items_of_the_history() {
    let earlier_response = parse(&[item_events(), vec![completed_event(json!([]))]].concat()).unwrap();
    let calls = earlier_response.tool_calls.clone();
    let history = [
        Message::system("be brief"),
        Message::user("hi"),
        Message::assistant(earlier_response.content, calls.clone()).with_blocks(earlier_response.blocks),
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
    let body = dialect.body("gpt-5", request, BLOCK_ISSUER, ResponseMode::Complete);
    assert_eq!(
        body["input"],
        json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
            reasoning_block(),
            {"role": "assistant", "content": "I löök."},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{\"at\": 1}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "found"},
        ])
    );
    assert_eq!(
        (&body["store"], &body["include"]),
        (&json!(false), &json!(["reasoning.encrypted_content"]))
    );
    assert_eq!(
        (&body["tools"][0]["strict"], &body["tools"][1]["strict"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(body["tools"][0]["parameters"]["required"], json!(["at"]));
    // This model does not reason, and the block of the history is from another issuer.
    let other_body = dialect.body("gpt-4o", request, "responses:other", ResponseMode::Complete);
    assert!(other_body.get("include").is_none() && !other_body.to_string().contains("encrypted"));
    // The strict schema requires `at`, so the model writes `null` for a missing value. `restore_arguments` removes this
    // `null`, because the original schema does not allow it.
    let mut call = ToolCall {
        arguments: "{\"at\":null}".to_owned(),
        ..calls[0].clone()
    };
    dialect.restore_arguments(&mut call, &tools[0]);
    assert_eq!(call.arguments, "{}");
}
