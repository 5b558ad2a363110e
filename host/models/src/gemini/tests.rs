#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::GenerateContent;
use crate::client::Dialect;
use crate::client::testing::{BLOCK_ISSUER, assert_cuts_do_not_matter, read, stream};
use crate::http::{AttemptFailure, ResponseMode};
use toolwit_agent::model::{
    ChatOptions, ChatRequest, ChatResponse, DeclaredTool, FinishReason, TokenUsage, ToolChoice,
};
use toolwit_core::{Message, Picture, ToolCall, ToolDefinition, ToolId, ToolName};

fn chunk(parts: Value, finish_reason: Option<&str>) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish_reason}], "usageMetadata": {
        "promptTokenCount": 20, "candidatesTokenCount": 9, "thoughtsTokenCount": 4, "cachedContentTokenCount": 16,
    }})
}

/// Returns the chunks of a stream with reasoning, text, two calls, signatures and token counts.
fn sample_chunks() -> Vec<Value> {
    vec![
        chunk(
            json!([{"text": "Let me ", "thought": true}, {"text": "see.", "thought": true}]),
            None,
        ),
        chunk(json!([{"text": "I "}]), None),
        chunk(json!([{"text": "löök.", "thoughtSignature": "dGV4dA"}]), None),
        chunk(
            json!([
                {"functionCall": {"name": "look", "args": {"at": 1}}, "thoughtSignature": "Y2FsbA"},
                {"functionCall": {"name": "look"}},
            ]),
            None,
        ),
        chunk(json!([{"text": "", "thoughtSignature": "ZW5k"}]), Some("STOP")),
    ]
}

/// Asserts that a response has the content of [`sample_chunks`].
fn assert_sample_content(response: &ChatResponse) {
    assert_eq!(
        (response.content.as_str(), response.reasoning.as_str()),
        ("I löök.", "Let me see.")
    );
    let calls = response.tool_calls.iter();
    let calls: Vec<_> = calls.map(|call| (&*call.id, &*call.name, &*call.arguments)).collect();
    assert_eq!(calls, [("call_1", "look", "{\"at\":1}"), ("call_2", "look", "{}")]);
    assert_eq!(
        (&response.finish, response.stop_reason.as_deref()),
        (&FinishReason::ToolCalls, Some("STOP"))
    );
    assert_eq!(response.usage, TokenUsage::new(20, 16, 13).with_reasoning(4));
}

// accept: 10, attack: F9
#[test]
fn a_stream_an_array_and_a_complete_response_give_the_same_response() {
    assert_sample_content(&read::<GenerateContent>(stream(&sample_chunks())).unwrap());
    assert_sample_content(&read::<GenerateContent>(json!(sample_chunks()).to_string()).unwrap());
    let parts: Vec<Value> = sample_chunks()
        .iter()
        .flat_map(|chunk| chunk["candidates"][0]["content"]["parts"].as_array().unwrap().clone())
        .collect();
    assert_sample_content(&read::<GenerateContent>(chunk(json!(parts), Some("STOP")).to_string()).unwrap());
}

// attack: F6
#[test]
fn the_bytes_of_a_stream_may_be_cut_anywhere() {
    assert_cuts_do_not_matter::<GenerateContent>(stream(&sample_chunks()[2..]).as_bytes());
}

// attack: F5
#[test]
fn errors_content_filters_and_truncated_streams_are_distinguished() {
    let busy = json!({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}});
    let failure = read::<GenerateContent>(stream(&[sample_chunks()[1].clone(), busy])).unwrap_err();
    assert!(matches!(failure, AttemptFailure::Transient { status: Some(503), .. }));
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}});
    let response = read::<GenerateContent>(blocked.to_string()).unwrap();
    assert_eq!(
        (response.finish, response.stop_reason.as_deref()),
        (FinishReason::ContentFilter, Some("SAFETY"))
    );
    let finish_for = |reason| {
        read::<GenerateContent>(chunk(json!([]), Some(reason)).to_string())
            .unwrap()
            .finish
    };
    assert_eq!(finish_for("MAX_TOKENS"), FinishReason::Length);
    assert_eq!(finish_for("RECITATION"), FinishReason::ContentFilter);
    assert_eq!(
        finish_for("MALFORMED_FUNCTION_CALL"),
        FinishReason::Other("MALFORMED_FUNCTION_CALL".to_owned())
    );
    let mut explained = chunk(json!([]), Some("MALFORMED_FUNCTION_CALL"));
    explained["candidates"][0]["finishMessage"] = json!("no tool `x`");
    assert_eq!(
        read::<GenerateContent>(explained.to_string()).unwrap().finish,
        FinishReason::Other("MALFORMED_FUNCTION_CALL: no tool `x`".to_owned())
    );
    assert_eq!(
        read::<GenerateContent>(stream(&sample_chunks()[..3])).unwrap_err(),
        AttemptFailure::interrupted()
    );
    assert!(matches!(
        read::<GenerateContent>("{}").unwrap_err(),
        AttemptFailure::Permanent(_)
    ));
}

/// Returns the body of a request to an API and a host. The provider blocks that they issued have the issuer `block_issuer`.
fn request_body(
    model: &str,
    block_issuer: &str,
    messages: &[Message],
    tools: &[DeclaredTool],
    options: &ChatOptions,
) -> Value {
    let cancel = CancellationToken::new();
    let request = ChatRequest::new(messages, tools, options, &cancel);
    GenerateContent::default().body(model, request, block_issuer, ResponseMode::Streaming)
}

#[test]
fn pictures_are_parts_of_messages_and_of_the_results_of_newer_models() {
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
    let image = json!({"inlineData": {"mimeType": "image/gif", "data": "R0lGODlh"}});
    for (model, is_nested) in [("gemini-3-pro", true), ("gemini-2.5-pro", false)] {
        let sent = request_body(model, "", &history, &[], &ChatOptions::default());
        assert_eq!(sent["contents"][0]["parts"], json!([{"text": "see"}, image]));
        let parts = &sent["contents"][2]["parts"];
        let nested = &parts[0]["functionResponse"]["parts"];
        let (present, absent) = if is_nested {
            (&nested[0], &parts[1])
        } else {
            (&parts[1], &nested[0])
        };
        assert_eq!((present, absent), (&image, &Value::Null), "{model}");
    }
}

// accept: 9
#[test]
fn signatures_are_sent_back_with_the_parts_to_which_they_belong() {
    let received = read::<GenerateContent>(stream(&sample_chunks())).unwrap();
    let calls = received.tool_calls.clone();
    let history = [
        Message::system("be brief"),
        Message::user("hi"),
        Message::assistant(received.content, calls.clone()).with_blocks(received.blocks),
        Message::tool(&calls[0], "found", false),
        Message::tool(&calls[1], "no", true),
    ];
    let sent = request_body("gemini-3-pro", BLOCK_ISSUER, &history, &[], &ChatOptions::default());
    let expected = json!([
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [
            {"text": "I "},
            {"text": "löök.", "thoughtSignature": "dGV4dA"},
            {"functionCall": {"id": "call_1", "name": "look", "args": {"at": 1}}, "thoughtSignature": "Y2FsbA"},
            {"functionCall": {"id": "call_2", "name": "look", "args": {}}},
            {"text": "", "thoughtSignature": "ZW5k"},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"id": "call_1", "name": "look", "response": {"output": "found"}}},
            {"functionResponse": {"id": "call_2", "name": "look", "response": {"error": "no"}}},
        ]},
    ]);
    assert_eq!(sent["contents"], expected);
    assert_eq!(sent["systemInstruction"], json!({"parts": [{"text": "be brief"}]}));
    let body_for_other_issuer = request_body(
        "gemini-3-pro",
        "gemini:elsewhere",
        &history,
        &[],
        &ChatOptions::default(),
    );
    let call = &body_for_other_issuer["contents"][1]["parts"][1];
    assert_eq!(call["thoughtSignature"], "skip_thought_signature_validator");
    let body_for_older_model = request_body(
        "gemini-2.5-pro",
        "gemini:elsewhere",
        &history,
        &[],
        &ChatOptions::default(),
    );
    assert!(!body_for_older_model.to_string().contains("thoughtSignature"));
}

// accept: 10
#[test]
fn tools_and_options_are_in_the_format_of_the_api() {
    let schema = json!({"type": "object", "properties": {"a": {"const": "x", "minLength": 1}}});
    let tool = DeclaredTool {
        name: ToolName::parse("add").unwrap(),
        definition: Arc::new(ToolDefinition::new(ToolId::native("add"), "add", "Adds.", schema)),
    };
    let options = ChatOptions {
        tool_choice: ToolChoice::Required,
        max_tokens: Some(9),
        ..ChatOptions::default()
    };
    let sent = request_body("m", BLOCK_ISSUER, &[Message::user("hi")], &[tool], &options);
    let schema = json!({"type": "object", "properties": {"a": {"enum": ["x"]}}});
    let declaration = json!({"name": "add", "description": "Adds.", "parametersJsonSchema": schema});
    assert_eq!(sent["tools"], json!([{"functionDeclarations": [declaration]}]));
    assert_eq!(sent["toolConfig"], json!({"functionCallingConfig": {"mode": "ANY"}}));
    assert_eq!(sent["generationConfig"], json!({"maxOutputTokens": 9}));
}

#[test]
fn the_answer_schema_is_sent_in_the_format_of_the_api_and_keeps_its_root_type() {
    let options = ChatOptions {
        answer_schema: Some(json!({"type": "array", "items": {"const": "x", "minLength": 1}})),
        ..ChatOptions::default()
    };
    let schema = json!({"type": "object"});
    let tool = DeclaredTool {
        name: ToolName::parse("add").unwrap(),
        definition: Arc::new(ToolDefinition::new(ToolId::native("add"), "add", "Adds.", schema)),
    };
    let config = |model, tools: &[DeclaredTool]| {
        let sent = request_body(model, BLOCK_ISSUER, &[Message::user("hi")], tools, &options);
        sent.get("generationConfig").cloned()
    };
    let expected = json!({
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "array", "items": {"enum": ["x"]}},
    });
    let tools = [tool];
    assert_eq!(config("gemini-2.5-pro", &[]), Some(expected.clone()));
    assert_eq!(
        config("gemini-2.5-pro", &tools),
        None,
        "this model refuses a schema together with tools"
    );
    assert_eq!(config("gemini-3-pro", &tools), Some(expected));
}

#[test]
fn the_response_mode_determines_the_path() {
    let path = |model, mode| GenerateContent::path(model, mode);
    assert_eq!(
        path("gemini-2.5-pro", ResponseMode::Streaming),
        (
            "v1beta/models/gemini-2.5-pro:streamGenerateContent".to_owned(),
            Some(("alt", "sse"))
        )
    );
    assert_eq!(
        path("tunedModels/x", ResponseMode::Complete),
        ("v1beta/tunedModels/x:generateContent".to_owned(), None)
    );
}
