//! The bodies of requests.

use std::sync::Arc;

use super::*;
use crate::client::Dialect;
use crate::http::ResponseMode;
use toolwit_agent::model::{DeclaredTool, ToolChoice};
use toolwit_core::{ProviderBlock, ToolCall, ToolDefinition, ToolId, ToolName};

fn tool(name: &str, schema: Value) -> DeclaredTool {
    DeclaredTool {
        name: ToolName::parse(name).unwrap(),
        definition: Arc::new(ToolDefinition::new(ToolId::native(name), name, "Adds.", schema)),
    }
}

fn body(host: &str, messages: &[Message], tools: &[DeclaredTool], options: &ChatOptions) -> Value {
    let cancel = CancellationToken::new();
    let request = ChatRequest::new(messages, tools, options, &cancel);
    let dialect = ChatCompletions::default().with_defaults_for(host, "m");
    dialect.body("m", request, &format!("chat:{host}"), ResponseMode::Complete)
}

// accept: 10
#[test]
fn requests_contain_only_the_options_that_are_set() {
    let tools = [tool("add", json!({"type": "object", "properties": {"b": {}, "a": {}}}))];
    let messages = [Message::user("hi")];
    let mut options = ChatOptions {
        tool_choice: ToolChoice::Required,
        ..ChatOptions::default()
    };
    assert_eq!(
        body("localhost", &messages, &[], &options),
        json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": false}),
    );
    options.max_tokens = Some(9);
    options.temperature = Some(0.5);
    let openai = body("api.openai.com", &messages, &tools, &options);
    let schema = json!({"type": "object", "properties": {"b": {}, "a": {}}});
    let function = json!({"name": "add", "description": "Adds.", "parameters": schema});
    assert_eq!(
        openai["tools"].to_string(),
        json!([{"type": "function", "function": function}]).to_string(),
        "properties keep their declared order"
    );
    assert_eq!(openai["tool_choice"], "required");
    assert_eq!(
        (&openai["max_completion_tokens"], &openai["temperature"]),
        (&json!(9), &json!(0.5))
    );
    assert!(openai.get("max_tokens").is_none());
    assert_eq!(body("localhost", &messages, &tools, &options)["max_tokens"], 9);
}

#[test]
fn strict_schemas_are_sent_only_to_openai_and_only_for_tools_that_support_them() {
    let tools = [
        tool(
            "strict",
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        ),
        tool("lenient", json!({"oneOf": [{"type": "string"}]})),
    ];
    let openai = body("api.openai.com", &[], &tools, &ChatOptions::default());
    let functions = openai["tools"].as_array().unwrap();
    let (strict, lenient) = (&functions[0]["function"], &functions[1]["function"]);
    assert_eq!(strict["strict"], true);
    assert_eq!(
        strict["parameters"]["properties"]["a"],
        json!({"type": ["string", "null"]})
    );
    assert_eq!(
        (lenient.get("strict"), &lenient["parameters"]),
        (None, &json!({"type": "object", "properties": {}}))
    );
    let local = body("localhost", &[], &tools, &ChatOptions::default());
    let function = &local["tools"][0]["function"];
    assert!(function.get("strict").is_none());
    assert_eq!(function["parameters"]["properties"]["a"], json!({"type": "string"}));
}

#[test]
fn reasoning_is_sent_back_only_to_its_issuer_and_its_content_only_with_calls() {
    let block = |field: &str| ProviderBlock {
        issuer: "chat:api.deepseek.com".to_owned(),
        data: json!({field: "because"}),
        text_bytes_before: 0,
        calls_before: 0,
    };
    let call = ToolCall {
        id: "a".to_owned(),
        name: "f".to_owned(),
        arguments: "{}".to_owned(),
    };
    let with_call = Message::assistant("", vec![call]).with_blocks(vec![block("reasoning_content")]);
    let without_call = Message::assistant("x", vec![]).with_blocks(vec![block("reasoning_content")]);
    let details = Message::assistant("x", vec![]).with_blocks(vec![block("reasoning_details")]);
    let messages = [with_call, without_call, details];
    let sent = body("api.deepseek.com", &messages, &[], &ChatOptions::default());
    assert_eq!(sent["messages"][0]["reasoning_content"], "because");
    assert!(sent["messages"][1].get("reasoning_content").is_none());
    assert_eq!(sent["messages"][2]["reasoning_details"], "because");
    let other_provider = body("api.openai.com", &messages, &[], &ChatOptions::default());
    assert!(!other_provider.to_string().contains("because"));
}

#[test]
fn mistral_receives_ids_of_nine_characters_and_no_stream_options() {
    let call = ToolCall {
        id: "call_1".to_owned(),
        name: "f".to_owned(),
        arguments: "{}".to_owned(),
    };
    let messages = [
        Message::assistant("", vec![call.clone()]),
        Message::tool(&call, "1", false),
    ];
    let sent = body("api.mistral.ai", &messages, &[], &ChatOptions::default());
    let id = sent["messages"][0]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!(id.len(), 9);
    assert_eq!(sent["messages"][1]["tool_call_id"], id);
    let (options, cancel) = (ChatOptions::default(), CancellationToken::new());
    let dialect = ChatCompletions::default().with_defaults_for("api.mistral.ai", "m");
    let request = ChatRequest::new(&messages, &[], &options, &cancel);
    let streamed = dialect.body("m", request, "", ResponseMode::Streaming);
    assert_eq!(
        (streamed.get("stream_options"), &streamed["stream"]),
        (None, &json!(true))
    );
}
