//! Tests of the strategies: conversations with the tools of a plugin directory.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use toolwit_agent::injection::Facade;
use toolwit_agent::model::{ChatModel, ChatRequest, ChatResponse, ModelError};
use toolwit_agent::{Conversation, ConversationBuilder, ToolSource};
use toolwit_core::{Error, Message, NativeTool, Tool, ToolCall, ToolContext, ToolResult};
use toolwit_registry::store::MemoryStore;
use toolwit_registry::{EmbeddingModel, LiveRegistry, MissingPath, Registry};
use toolwit_sandbox::{CodeCacheLocation, Runtime, RuntimeOptions, Scope};

use super::{TOOL_GUIDANCE, ToolSearch};
use toolwit_core::limits::SEARCH_WALL_MAX;

mod guards;
mod origins;
mod replaced;
mod resumed;

/// A request that the model received.
#[derive(Clone)]
struct Request {
    messages: Vec<Message>,
    /// The names of the declared tools.
    names: Vec<String>,
    /// A JSON array for each declared tool: its name, description and input schema.
    definitions: Vec<String>,
}

/// A model that returns prepared responses and records its requests. It does not check that the called tools are declared.
#[derive(Clone, Default)]
struct Recorder {
    responses: Arc<Mutex<VecDeque<ChatResponse>>>,
    requests: Arc<Mutex<Vec<Request>>>,
}

#[async_trait]
impl ChatModel for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        let definition = |tool: &toolwit_agent::model::DeclaredTool| {
            json!([tool.name, tool.definition.description, *tool.definition.input_schema]).to_string()
        };
        self.requests.lock().unwrap().push(Request {
            messages: request.messages.to_vec(),
            names: request.tools.iter().map(|tool| tool.name.to_string()).collect(),
            definitions: request.tools.iter().map(definition).collect(),
        });
        Ok(self
            .responses
            .lock()
            .unwrap()
            .pop_front()
            .expect("the model has another response"))
    }
}

/// Returns a builder whose model returns these responses, and the recorder of its requests.
fn recording_builder(responses: impl IntoIterator<Item = ChatResponse>) -> (ConversationBuilder, Recorder) {
    let recorder = Recorder {
        responses: Arc::new(Mutex::new(responses.into_iter().collect())),
        ..Recorder::default()
    };
    (Conversation::builder().model(recorder.clone()), recorder)
}

/// Returns a native tool that answers with its name.
fn native_tool(name: &str, description: &str) -> Arc<dyn Tool> {
    let answer = format!("{name} ran");
    let tool = NativeTool::new(name, description, json!({"type": "object"}), move |_, _| {
        let answer = answer.clone();
        async move { Ok(ToolResult::text(answer)) }
    });
    Arc::new(tool.unwrap())
}

/// Returns a response with an answer.
fn answer(text: &str) -> ChatResponse {
    ChatResponse::new(text.to_owned(), Vec::new())
}

/// Returns a response with one call.
fn call(tool: &str, arguments: Value) -> ChatResponse {
    let call = ToolCall {
        id: format!("call-{tool}"),
        name: tool.to_owned(),
        arguments: arguments.to_string(),
    };
    ChatResponse::new(String::new(), vec![call])
}

/// Writes a component whose function `export` returns its argument, and a manifest with a use case, which the search
/// finds.
fn write_plugin(directory: &Path, plugin: &str, export: &str, use_case: &str) {
    let text = format!(
        r#"(component
            (core module $m (func (export "f") (param i32) (result i32) local.get 0))
            (core instance $i (instantiate $m))
            (func (export "{export}") (param "a" s32) (result s32) (canon lift (core func $i "f"))))"#
    );
    fs::write(
        directory.join(plugin).with_extension("wasm"),
        wat::parse_str(text).unwrap(),
    )
    .unwrap();
    fs::write(
        directory.join(plugin).with_extension("toml"),
        format!("use_case = {use_case:?}"),
    )
    .unwrap();
}

/// Writes three plugins to a directory, and returns a search of their tools.
async fn tool_search(directory: &Path) -> ToolSearch {
    ToolSearch::new(registry(directory).await, Scope::new())
}

/// Writes three plugins to a directory, and returns the registry of the directory.
async fn registry(directory: &Path) -> Registry {
    write_plugin(
        directory,
        "weather",
        "get-forecast",
        "When the user asks for the weather",
    );
    write_plugin(directory, "mail", "send-email", "When the user wants to send a message");
    write_plugin(directory, "music", "play-song", "When the user wants to hear music");
    let options = RuntimeOptions {
        code_cache: CodeCacheLocation::Off,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options).unwrap();
    Registry::scan(&runtime, &[directory.to_owned()]).await.unwrap()
}

// accept: 103, accept: 110, accept: 115, accept: 125, accept: 131, accept: 135
#[tokio::test]
async fn tools_that_match_the_message_are_declared_before_the_first_inference() {
    let directory = tempfile::tempdir().unwrap();
    let search = tool_search(directory.path()).await;
    let (builder, recorder) = recording_builder([call("get_forecast", json!({"a": 21})), answer("21 degrees")]);
    let builder = builder.strategy(search).system("You are a farmer.");
    let mut conversation = builder.build().unwrap();
    let outcome = conversation.run("Tell me what the weather is like").await.unwrap();
    assert_eq!(outcome.text(), "21 degrees");
    let requests = recorder.requests.lock().unwrap().clone();
    assert_eq!(requests[0].names, ["search_tools", "get_forecast"]);
    let system = format!("You are a farmer.\n\n{TOOL_GUIDANCE}");
    assert_eq!(requests[0].messages[0].content(), system);
    for rule in [
        "do not describe what you would do",
        "only for a capability that none of your tools has",
        "names of tools exactly",
        "a key or a setting is missing, ask the user",
        "several calls",
    ] {
        assert!(system.contains(rule), "{rule}");
    }
    assert!(requests[0].definitions[1].contains("When the user asks for the weather"));
    assert_eq!(requests[1].messages.last().unwrap().content(), "21");
}

// accept: 110, accept: 116, accept: 121
#[tokio::test]
async fn the_model_finds_and_calls_a_tool_and_a_repeated_search_adds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let search = tool_search(directory.path()).await;
    let query = json!({"need": "a tool that sends emails", "task": "write to Ann"});
    let (builder, recorder) = recording_builder([
        call("search_tools", query.clone()),
        call("search_tools", query),
        call("send_email", json!({"a": 7})),
        answer("done"),
    ]);
    let mut conversation = builder.strategy(search).build().unwrap();
    conversation.run("Please go on").await.unwrap();
    let requests = recorder.requests.lock().unwrap().clone();
    let last_message = |index: usize| requests[index].messages.last().unwrap().content().to_owned();
    assert_eq!(
        requests[0].names,
        ["search_tools"],
        "no tool matches the user's message"
    );
    assert_eq!(requests[1].names, ["search_tools", "send_email"]);
    assert!(
        last_message(1).contains("these are your tools now"),
        "{}",
        last_message(1)
    );
    let found: Value = serde_json::from_str(&last_message(1)).unwrap();
    let description = found["hits"][0]["description"].as_str().unwrap();
    assert!(description.contains("wants to send a message"), "{description}");
    assert_eq!(
        requests[2].definitions, requests[1].definitions,
        "no tool is added twice"
    );
    assert!(
        last_message(2).contains("an earlier search found these tools"),
        "{}",
        last_message(2)
    );
    assert_eq!(last_message(3), "7");
}

// accept: 110
#[tokio::test]
async fn a_tool_that_the_conversation_may_not_use_is_neither_found_nor_callable() {
    let directory = tempfile::tempdir().unwrap();
    let registry = registry(directory.path()).await;
    let search = |may_use: fn(&str) -> bool| ToolSearch::among(registry.clone(), Scope::new(), may_use);
    for (search, is_available) in [
        (search(|_| true), true),
        (search(|id| !id.starts_with("weather#")), false),
    ] {
        let calls = [
            call("search_tools", json!({"need": "weather forecast"})),
            call("get_forecast", json!({"a": 21})),
            answer("done"),
        ];
        let (builder, recorder) = recording_builder(calls);
        let builder = builder.strategy(search).guidance("Be brief.");
        builder
            .build()
            .unwrap()
            .run("the weather forecast, please")
            .await
            .unwrap();
        let requests = recorder.requests.lock().unwrap().clone();
        assert_eq!(requests[0].messages[0].content(), "Be brief.");
        assert_eq!(requests[2].names.contains(&"get_forecast".to_owned()), is_available);
        assert_eq!(requests[2].messages.last().unwrap().content() == "21", is_available);
        let found = requests[1].messages.last().unwrap().content().to_owned();
        assert_eq!(found.contains("weather#get-forecast"), is_available, "{found}");
    }
}

// accept: 109
#[tokio::test]
async fn the_three_messages_before_the_last_are_the_context_of_the_automatic_search() {
    let directory = tempfile::tempdir().unwrap();
    let search = |registry: Registry| {
        ToolSearch::new(registry, Scope::new()).with_tools([
            native_tool("extract_dates", "Extracts data: dates of a calendar"),
            native_tool("extract_prices", "Extracts data: prices of a web shop"),
        ])
    };
    let registry = registry(directory.path()).await;
    let first_found_tool = async |earlier_messages: &[&str]| {
        let (builder, recorder) = recording_builder([answer("ok")]);
        let exchange = |text: &&str| [Message::user(*text), Message::assistant("hm", Vec::new())];
        let builder = builder.history(earlier_messages.iter().flat_map(exchange).collect());
        builder
            .strategy(search(registry.clone()))
            .run("extract data")
            .await
            .unwrap();
        let requests = recorder.requests.lock().unwrap().clone();
        // The first declared tool is `search_tools`.
        requests[0].names[1].clone()
    };
    let context = "I am building a web shop";
    assert_eq!(first_found_tool(&[]).await, "extract_dates");
    assert_eq!(first_found_tool(&[context]).await, "extract_prices");
    assert_eq!(first_found_tool(&[context, "hm", "hm"]).await, "extract_prices");
    assert_eq!(
        first_found_tool(&[context, "hm", "hm", "hm"]).await,
        "extract_dates",
        "the search ignores older messages"
    );
}

// accept: 110
#[tokio::test]
async fn a_search_covers_the_tools_that_were_injected_in_the_same_turn() {
    let directory = tempfile::tempdir().unwrap();
    let search = tool_search(directory.path()).await;
    let roses = native_tool("water_roses", "Waters the roses in the garden");
    let garden = Facade::builder("outside", "Opens a door.")
        .tools([roses])
        .build()
        .unwrap();
    let need = json!({"need": "a tool that waters roses"});
    let (builder, recorder) =
        recording_builder([call("outside", json!({})), call("search_tools", need), answer("done")]);
    builder
        .strategy(search)
        .tool(garden)
        .run("open the door")
        .await
        .unwrap();
    let found = recorder.requests.lock().unwrap()[2]
        .messages
        .last()
        .unwrap()
        .content()
        .to_owned();
    let found: Value = serde_json::from_str(&found).unwrap();
    let ids: Vec<_> = found["hits"].as_array().unwrap().iter().map(|hit| &hit["id"]).collect();
    assert!(ids.contains(&&json!("native#outside/water_roses")), "{found}");
}
