//! Tests, over HTTP, of deferred tools: the provider adds a tool to the prompt when the model has searched for it.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::{Anthropic, OpenAi, OpenAiResponses, ResponseMode};
use toolwit_agent::Conversation;
use toolwit_agent::model::{ChatModel, ChatOptions, ChatRequest, DeclaredTool, ToolDelivery};
use toolwit_core::{Message, NativeTool, ToolDefinition, ToolId, ToolName, ToolResult};

/// Starts a server that returns these responses in order, one to each request.
async fn start_server(responses: &[Value]) -> MockServer {
    let server = MockServer::start().await;
    for response in responses {
        let response = ResponseTemplate::new(200).set_body_json(response);
        let mock = Mock::given(method("POST")).respond_with(response);
        mock.up_to_n_times(1).mount(&server).await;
    }
    server
}

/// Runs a conversation with one tool. Returns the answer and the bodies of the requests.
async fn run(model: impl ChatModel + 'static, delivery: ToolDelivery, server: &MockServer) -> (String, Vec<Value>) {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let weather = NativeTool::new("weather", "Returns the weather.", schema, |arguments, _| async move {
        Ok(ToolResult::text(format!("sunny in {}", arguments["city"])))
    });
    let mut conversation = Conversation::builder()
        .model(model)
        .tool(weather.unwrap())
        .delivery(delivery)
        .build()
        .unwrap();
    let outcome = conversation.run("What is the weather in Rome?").await.unwrap();
    let received = server.received_requests().await.unwrap();
    let bodies = received.iter().map(|request| request.body_json().unwrap()).collect();
    (outcome.text().to_owned(), bodies)
}

/// Returns two responses. The first one has a tool search, which the provider executed, and a call. The second one is the
/// answer.
fn anthropic_responses() -> [Value; 2] {
    let usage = json!({"input_tokens": 9, "output_tokens": 9});
    let references = json!([{"type": "tool_reference", "tool_name": "weather"}]);
    [
        json!({"content": [
            {"type": "text", "text": "I search."},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "weather"}},
            {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1",
                "content": {"type": "tool_search_tool_search_result", "tool_references": references}},
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Rome"}},
        ], "stop_reason": "tool_use", "usage": usage}),
        json!({"content": [{"type": "text", "text": "Sunny."}], "stop_reason": "end_turn", "usage": usage}),
    ]
}

fn anthropic(server: &MockServer) -> Anthropic {
    let builder = Anthropic::builder("claude-sonnet-4-5").base_url(server.uri());
    builder.response_mode(ResponseMode::Complete).build().unwrap()
}

#[tokio::test]
async fn anthropic_defers_tools_and_its_search_is_sent_back() {
    let server = start_server(&anthropic_responses()).await;
    let (answer, bodies) = run(anthropic(&server), ToolDelivery::Native, &server).await;
    assert_eq!(answer, "Sunny.");
    let tools = &bodies[0]["tools"];
    assert_eq!(tools[0]["type"], "tool_search_tool_bm25_20251119");
    assert!(
        tools[0].get("defer_loading").is_none(),
        "the search tool is not deferred"
    );
    assert_eq!(
        (&tools[1]["name"], &tools[1]["defer_loading"]),
        (&json!("weather"), &json!(true))
    );
    assert_eq!(tools[1]["allowed_callers"], json!(["direct"]));
    assert_eq!(
        bodies[1]["tools"], *tools,
        "the next request has the same tools, so that the prompt stays cached"
    );
    let block_types = |message: &Value| -> Vec<String> {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks.map(|block| block["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        block_types(&bodies[1]["messages"][1]),
        ["text", "server_tool_use", "tool_search_tool_result", "tool_use"]
    );
    assert_eq!(bodies[1]["messages"][2]["content"][0]["content"], "sunny in \"Rome\"");
}

#[tokio::test]
async fn a_response_that_anthropic_paused_is_continued() {
    let [call, answer] = anthropic_responses();
    let content = call["content"].as_array().unwrap();
    let usage = json!({"input_tokens": 9, "output_tokens": 9});
    let paused = json!({"content": content[..2], "stop_reason": "pause_turn", "usage": usage});
    let continuation = json!({"content": content[2..], "stop_reason": "tool_use", "usage": usage});
    let server = start_server(&[paused, continuation, answer]).await;
    let (answer, bodies) = run(anthropic(&server), ToolDelivery::Native, &server).await;
    assert_eq!(answer, "Sunny.");
    let sent_messages = bodies[1]["messages"].as_array().unwrap();
    assert_eq!(
        sent_messages[1],
        json!({"role": "assistant", "content": content[..2]}),
        "the paused response is sent back unchanged"
    );
    assert_eq!(sent_messages.len(), 2);
    let joined_blocks = bodies[2]["messages"][1]["content"].as_array().unwrap();
    assert_eq!(
        joined_blocks.len(),
        4,
        "the paused response and its continuation are one message: {joined_blocks:?}"
    );
}

#[tokio::test]
async fn with_the_delivery_list_no_tool_is_deferred_and_the_answer_is_the_same() {
    let [mut call, answer] = anthropic_responses();
    let blocks = call["content"].as_array_mut().unwrap();
    blocks.drain(1..3);
    let server = start_server(&[call, answer]).await;
    let (answer, bodies) = run(anthropic(&server), ToolDelivery::List, &server).await;
    assert_eq!(answer, "Sunny.");
    assert!(!bodies[0]["tools"].to_string().contains("defer_loading"));
    assert_eq!(bodies[1]["messages"][2]["content"][0]["content"], "sunny in \"Rome\"");
}

#[tokio::test]
async fn openai_responses_defers_tools_and_its_search_is_sent_back() {
    let usage = json!({"input_tokens": 9, "output_tokens": 9});
    let loaded_tools = json!([{"type": "function", "name": "weather", "defer_loading": true, "parameters": {}}]);
    let message =
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sunny."}]});
    let server = start_server(&[
        json!({"status": "completed", "usage": usage, "output": [
            {"type": "tool_search_call", "id": "tsc_1", "execution": "server", "call_id": null, "status": "completed",
                "arguments": {"paths": ["weather"]}},
            {"type": "tool_search_output", "id": "tso_1", "execution": "server", "call_id": null, "status": "completed",
                "tools": loaded_tools},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": "{\"city\": \"Rome\"}"},
        ]}),
        json!({"status": "completed", "usage": usage, "output": [message]}),
    ])
    .await;
    let builder = OpenAiResponses::builder("gpt-5.4").base_url(server.uri());
    let model = builder.response_mode(ResponseMode::Complete).build().unwrap();
    let (answer, bodies) = run(model, ToolDelivery::Native, &server).await;
    assert_eq!(answer, "Sunny.");
    let tools = &bodies[0]["tools"];
    assert_eq!(tools[0], json!({"type": "tool_search"}));
    assert_eq!(
        (&tools[1]["name"], &tools[1]["defer_loading"]),
        (&json!("weather"), &json!(true))
    );
    assert_eq!(tools[1]["allowed_callers"], json!(["direct"]));
    let input = bodies[1]["input"].as_array().unwrap();
    let item_types: Vec<_> = input.iter().filter_map(|item| item["type"].as_str()).collect();
    let expected = [
        "tool_search_call",
        "tool_search_output",
        "function_call",
        "function_call_output",
    ];
    assert_eq!(item_types, expected);
    assert_eq!(input.last().unwrap()["output"], "sunny in \"Rome\"");
}

fn plugin_tool(plugin: &str, name: &str) -> DeclaredTool {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let id = ToolId::plugin(plugin, None, name);
    DeclaredTool {
        name: ToolName::parse(name).unwrap(),
        definition: Arc::new(ToolDefinition::new(id, name, "Returns a value.", schema)),
    }
}

/// Returns a response with a call of a tool in a namespace, as a JSON document or as a stream of events.
fn namespaced_call(mode: ResponseMode) -> ResponseTemplate {
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "namespace": "weather", "name": "rain",
        "arguments": "{\"city\": \"Rome\"}"});
    let usage = json!({"input_tokens": 9, "output_tokens": 9});
    let response = json!({"status": "completed", "usage": usage, "output": [call]});
    if mode == ResponseMode::Complete {
        return ResponseTemplate::new(200).set_body_json(response);
    }
    let mut added_item = call.clone();
    added_item["arguments"] = json!("");
    let delta = "{\"city\": \"Rome\"}";
    let events = [
        json!({"type": "response.output_item.added", "output_index": 0, "item": added_item}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": delta}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": call}),
        json!({"type": "response.completed", "response": response}),
    ];
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
}

#[tokio::test]
async fn tools_of_a_plugin_are_deferred_in_its_namespace() {
    let tools = [
        plugin_tool("weather", "sun"),
        plugin_tool("orders", "refund"),
        plugin_tool("weather", "rain"),
    ];
    let (options, cancel) = (ChatOptions::default(), CancellationToken::new());
    for mode in [ResponseMode::Complete, ResponseMode::Streaming] {
        let server = MockServer::start().await;
        let mock = Mock::given(method("POST")).respond_with(namespaced_call(mode));
        mock.mount(&server).await;
        let builder = OpenAiResponses::builder("gpt-5.4").base_url(server.uri());
        let model = builder.response_mode(mode).build().unwrap();
        let question = Message::user("Does it rain in Rome?");
        let request =
            |history| ChatRequest::new(history, &tools, &options, &cancel).with_delivery(ToolDelivery::Native);
        let response = model.chat(request(std::slice::from_ref(&question))).await.unwrap();
        let call = &response.tool_calls[0];
        assert_eq!((&*call.name, &*call.arguments), ("rain", "{\"city\": \"Rome\"}"));
        let call_message = Message::assistant("", response.tool_calls.clone());
        let history = [question.clone(), call_message, Message::tool(call, "no", false)];
        model.chat(request(&history)).await.unwrap();

        let received = server.received_requests().await.unwrap();
        let bodies: Vec<Value> = received.iter().map(|request| request.body_json().unwrap()).collect();
        let declared = bodies[0]["tools"].as_array().unwrap();
        let types_and_names: Vec<_> = declared.iter().map(|tool| (&tool["type"], &tool["name"])).collect();
        let namespace = json!("namespace");
        assert_eq!(
            types_and_names[1..],
            [(&namespace, &json!("weather")), (&namespace, &json!("orders"))]
        );
        assert_eq!(declared[1]["description"], "Tools of `weather`, such as sun, rain.");
        let members = declared[1]["tools"].as_array().unwrap();
        let members: Vec<_> = members
            .iter()
            .map(|tool| (&tool["name"], &tool["defer_loading"]))
            .collect();
        assert_eq!(members, [(&json!("sun"), &json!(true)), (&json!("rain"), &json!(true))]);
        assert_eq!(bodies[1]["tools"], bodies[0]["tools"]);
        assert_eq!(
            bodies[1]["input"][1]["namespace"], "weather",
            "the call is sent back with its namespace"
        );
    }
}

#[tokio::test]
async fn an_api_without_deferral_refuses_the_delivery_native() {
    let model = OpenAi::builder("m").base_url("http://127.0.0.1:1/v1").build().unwrap();
    let result = Conversation::builder()
        .model(model)
        .delivery(ToolDelivery::Native)
        .build();
    let error = result.err().unwrap().to_string();
    assert!(error.contains("does not support the delivery `native`"), "{error}");
}
