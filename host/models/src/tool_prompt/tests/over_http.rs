//! Requests and responses of a server without tool calling.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::{OpenAi, PromptedTools, ToolCallFormat};
use toolwit_agent::model::{
    ChatDelta, ChatModel, ChatOptions, ChatRequest, ChatResponse, DeclaredTool, DescribedModel, FinishReason,
    ModelError, ToolChoice,
};
use toolwit_core::{Message, ToolCall, ToolDefinition, ToolId, ToolName};

fn tool(name: &str) -> DeclaredTool {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 0}},
        "required": ["a"],
    });
    DeclaredTool {
        name: ToolName::parse(name).unwrap(),
        definition: Arc::new(ToolDefinition::new(ToolId::native(name), name, "Adds.", schema)),
    }
}

/// Returns a response that streams the text in two pieces.
fn streamed_response(text: &str, finish_reason: &str) -> ResponseTemplate {
    let middle = (0..=text.len() / 2)
        .rev()
        .find(|index| text.is_char_boundary(*index))
        .unwrap();
    let (first, second) = text.split_at(middle);
    let delta = |content: &str, finish_reason: Option<&str>| json!({"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish_reason}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2}});
    let events = [delta(first, None), delta(second, Some(finish_reason)), usage];
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    ResponseTemplate::new(200).set_body_raw(body + "data: [DONE]\n\n", "text/event-stream")
}

/// Starts a server that streams one of these responses for each request, in order. A response has a text and a finish reason.
async fn server(responses: &[(&str, &str)]) -> MockServer {
    let server = MockServer::start().await;
    for (text, finish_reason) in responses {
        let mock = Mock::given(method("POST")).respond_with(streamed_response(text, finish_reason));
        mock.up_to_n_times(1).mount(&server).await;
    }
    server
}

fn model(server: &MockServer, format: ToolCallFormat) -> Arc<dyn ChatModel> {
    let client = OpenAi::builder("base").base_url(server.uri()).build().unwrap();
    format.apply(Arc::new(client))
}

/// Sends a request and returns the response with the text that the listener received.
async fn infer(
    model: &dyn ChatModel,
    messages: &[Message],
    tools: &[DeclaredTool],
    options: &ChatOptions,
) -> (Result<ChatResponse, ModelError>, String) {
    let text = Mutex::new(String::new());
    let listener = |delta: ChatDelta<'_>| {
        if let ChatDelta::Text(piece) = delta {
            text.lock().unwrap().push_str(piece);
        }
    };
    let cancel = CancellationToken::new();
    let request = ChatRequest::new(messages, tools, options, &cancel).with_listener(&listener);
    let response = model.chat(request).await;
    (response, text.into_inner().unwrap())
}

/// Returns the bodies of the requests that the server received.
async fn request_bodies(server: &MockServer) -> Vec<Value> {
    let received = server.received_requests().await.unwrap();
    received.iter().map(|request| request.body_json().unwrap()).collect()
}

/// Returns a conversation with one finished call and a further user message.
fn history() -> Vec<Message> {
    let call = ToolCall {
        id: "x".to_owned(),
        name: "add".to_owned(),
        arguments: r#"{"a":1}"#.to_owned(),
    };
    vec![
        Message::system("Be brief."),
        Message::user("Add."),
        Message::assistant("", vec![call.clone()]),
        Message::tool(&call, "2", false),
        Message::user("Again."),
    ]
}

#[tokio::test]
async fn a_constrained_call_is_requested_and_read() {
    let server = server(&[(r#"{"tool_calls": [{"name": "add", "arguments": {"a": 3}}]}"#, "stop")]).await;
    let model = model(&server, ToolCallFormat::Json);
    let (response, text) = infer(&*model, &history(), &[tool("add")], &ChatOptions::default()).await;
    let response = response.unwrap();
    assert_eq!((response.content.as_str(), text.as_str()), ("", ""));
    assert_eq!(response.finish, FinishReason::ToolCalls);
    let call = &response.tool_calls[0];
    assert_eq!(
        (call.id.as_str(), call.name.as_str(), call.arguments.as_str()),
        ("call_2", "add", r#"{"a":3}"#)
    );
    let body = &request_bodies(&server).await[0];
    assert!(body.get("tools").is_none() && body["max_tokens"].is_u64() && body["stream"] == true);
    let schema = &body["response_format"]["json_schema"]["schema"];
    let call_properties = &schema["anyOf"][0]["properties"]["tool_calls"]["items"]["anyOf"][0]["properties"];
    assert_eq!(call_properties["name"], json!({"enum": ["add"]}));
    assert_eq!(
        call_properties["arguments"]["properties"],
        json!({"a": {"type": "integer"}})
    );
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<_> = messages
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert!(
        messages[0]["content"]
            .as_str()
            .unwrap()
            .starts_with("Be brief.\n\nYou can call these tools:\n\n- add: Adds.")
    );
    assert_eq!(
        messages[2]["content"],
        r#"{"tool_calls":[{"name":"add","arguments":{"a":1}}]}"#
    );
    assert_eq!(messages[3]["content"], "Result of `add`:\n2\n\nAgain.");
}

#[tokio::test]
async fn the_schema_follows_the_visible_tools_and_the_tool_choice() {
    let answer = (r#"{"answer": "hi"}"#, "stop");
    let server = server(&[answer, answer, answer, ("hi", "stop")]).await;
    let model = model(&server, ToolCallFormat::Json);
    let without_calls = ChatOptions {
        tool_choice: ToolChoice::None,
        ..ChatOptions::default()
    };
    let with_answer_schema = ChatOptions {
        answer_schema: Some(json!({"type": "integer"})),
        ..ChatOptions::default()
    };
    let messages = [Message::user("hi")];
    let _ = infer(
        &*model,
        &messages,
        &[tool("add"), tool("list")],
        &ChatOptions::default(),
    )
    .await;
    let _ = infer(&*model, &messages, &[tool("add")], &without_calls).await;
    let _ = infer(&*model, &messages, &[tool("add")], &with_answer_schema).await;
    let (response, _) = infer(&*model, &messages, &[], &ChatOptions::default()).await;
    assert_eq!(response.unwrap().content, "hi");
    let bodies = request_bodies(&server).await;
    let schema = |index: usize| bodies[index]["response_format"]["json_schema"]["schema"].clone();
    let call_schemas = schema(0)["anyOf"][0]["properties"]["tool_calls"]["items"]["anyOf"].clone();
    assert_eq!(call_schemas.as_array().unwrap().len(), 2);
    assert_eq!(schema(1)["properties"], json!({"answer": {"type": "string"}}));
    assert_eq!(
        schema(2)["anyOf"][1]["properties"]["answer"],
        json!({"type": "integer"})
    );
    assert!(
        bodies[3].get("response_format").is_none(),
        "without tools the response is plain text"
    );
}

#[tokio::test]
async fn an_answer_is_streamed_without_its_json() {
    let server = server(&[(r#"{"answer": "Es sind \"3\" Äpfel.\n"}"#, "stop")]).await;
    let model = model(&server, ToolCallFormat::Json);
    let (response, text) = infer(&*model, &history(), &[tool("add")], &ChatOptions::default()).await;
    let expected = "Es sind \"3\" Äpfel.\n";
    assert_eq!(
        (response.unwrap().content.as_str(), text.as_str()),
        (expected, expected)
    );
}

// attack: F1
#[tokio::test]
async fn a_truncated_response_has_no_calls() {
    let truncated = [
        (
            ToolCallFormat::Json,
            r#"{"tool_calls": [{"name": "add", "arguments": {"a": 3}}"#,
            "",
        ),
        (ToolCallFormat::Json, r#"{"answer": "one, two"#, "one, two"),
        (
            ToolCallFormat::Text,
            "I add.\n<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 3}}</tool_call>",
            "I add.\n",
        ),
    ];
    for (format, text, expected) in truncated {
        let server = server(&[(text, "length")]).await;
        let model = model(&server, format);
        let (response, streamed) = infer(&*model, &history(), &[tool("add")], &ChatOptions::default()).await;
        let response = response.unwrap();
        assert_eq!(
            (response.tool_calls.len(), response.finish),
            (0, FinishReason::Length),
            "{text}"
        );
        assert_eq!((response.content.as_str(), streamed.as_str()), (expected, expected));
    }
}

#[tokio::test]
async fn a_call_in_text_is_read_and_the_text_before_it_is_streamed() {
    let text = "I add.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 3}}\n</tool_call>";
    let server = server(&[(text, "stop")]).await;
    let model = model(&server, ToolCallFormat::Text);
    let (response, streamed) = infer(&*model, &history(), &[tool("add")], &ChatOptions::default()).await;
    let response = response.unwrap();
    assert_eq!((response.content.as_str(), streamed.as_str()), ("I add.", "I add.\n"));
    assert_eq!(response.tool_calls[0].arguments, r#"{"a":3}"#);
    let body = &request_bodies(&server).await[0];
    assert!(body.get("response_format").is_none() && body.get("tools").is_none());
    let earlier_call = r#"<tool_call>{"name":"add","arguments":{"a":1}}</tool_call>"#;
    assert_eq!(body["messages"][2]["content"], earlier_call);
}

#[tokio::test]
async fn an_unreadable_response_is_requested_again_only_once() {
    let unreadable = (r#"{"tool": "add"}"#, "stop");
    let server = server(&[unreadable, (r#"{"answer": "3"}"#, "stop"), unreadable, unreadable]).await;
    let model = model(&server, ToolCallFormat::Json);
    let (response, _) = infer(&*model, &history(), &[tool("add")], &ChatOptions::default()).await;
    let response = response.unwrap();
    assert_eq!((response.content.as_str(), response.usage.input_tokens), ("3", 20));
    let last_message = request_bodies(&server).await[1]["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert!(
        last_message["content"].as_str().unwrap().contains("the key `tool`"),
        "{last_message}"
    );
    let (response, _) = infer(&*model, &history(), &[tool("add")], &ChatOptions::default()).await;
    assert!(matches!(response, Err(ModelError::Malformed { .. })), "{response:?}");
    assert_eq!(request_bodies(&server).await.len(), 4);
}

#[tokio::test]
async fn the_response_to_a_request_without_tools_is_plain_text() {
    let server = server(&[("<tool_call>{\"name\":\"add\"}</tool_call>", "stop")]).await;
    let client = OpenAi::builder("base").base_url(server.uri()).build().unwrap();
    let model = PromptedTools::text(client);
    let (response, _) = infer(&model, &[Message::user("hi")], &[], &ChatOptions::default()).await;
    let response = response.unwrap();
    assert_eq!((response.tool_calls.len(), response.content.len()), (0, 37));
}

#[test]
fn the_model_has_the_price_and_the_context_size_of_the_decorated_one() {
    let client = OpenAi::builder("base").base_url("http://127.0.0.1:1").build().unwrap();
    let described = DescribedModel::new(client).with_context_tokens(8_000);
    let model = ToolCallFormat::Json.apply(Arc::new(described));
    assert_eq!((model.context_tokens(), model.price()), (Some(8_000), None));
}
