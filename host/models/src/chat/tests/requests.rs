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
    let own = body("api.openai.com", &messages, &tools, &options);
    let schema = json!({"type": "object", "properties": {"b": {}, "a": {}}});
    let function = json!({"name": "add", "description": "Adds.", "parameters": schema});
    assert_eq!(
        own["tools"].to_string(),
        json!([{"type": "function", "function": function}]).to_string(),
        "properties keep their declared order"
    );
    assert_eq!(own["tool_choice"], "required");
    assert_eq!(
        (&own["max_completion_tokens"], &own["temperature"]),
        (&json!(9), &json!(0.5))
    );
    assert!(own.get("max_tokens").is_none());
    assert_eq!(body("localhost", &messages, &tools, &options)["max_tokens"], 9);
}

#[test]
fn strict_schemas_are_sent_to_openai_only_and_one_bad_tool_changes_no_other() {
    let tools = [
        tool(
            "good",
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        ),
        tool("bad", json!({"oneOf": [{"type": "string"}]})),
    ];
    let own = body("api.openai.com", &[], &tools, &ChatOptions::default());
    let functions = own["tools"].as_array().unwrap();
    let (good, bad) = (&functions[0]["function"], &functions[1]["function"]);
    assert_eq!(good["strict"], true);
    assert_eq!(
        good["parameters"]["properties"]["a"],
        json!({"type": ["string", "null"]})
    );
    assert_eq!(
        (bad.get("strict"), &bad["parameters"]),
        (None, &json!({"type": "object", "properties": {}}))
    );
    let other = body("localhost", &[], &tools, &ChatOptions::default());
    let good = &other["tools"][0]["function"];
    assert!(good.get("strict").is_none());
    assert_eq!(good["parameters"]["properties"]["a"], json!({"type": "string"}));
}

#[test]
fn reasoning_goes_back_to_its_issuer_with_the_calls_only() {
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
    let without = Message::assistant("x", vec![]).with_blocks(vec![block("reasoning_content")]);
    let details = Message::assistant("x", vec![]).with_blocks(vec![block("reasoning_details")]);
    let messages = [with_call, without, details];
    let sent = body("api.deepseek.com", &messages, &[], &ChatOptions::default());
    assert_eq!(sent["messages"][0]["reasoning_content"], "because");
    assert!(sent["messages"][1].get("reasoning_content").is_none());
    assert_eq!(sent["messages"][2]["reasoning_details"], "because");
    let elsewhere = body("api.openai.com", &messages, &[], &ChatOptions::default());
    assert!(!elsewhere.to_string().contains("because"));
}

#[test]
fn mistral_gets_ids_of_nine_characters_and_no_stream_options() {
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
