//! Sources of tools, such as servers, in a conversation.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use toolwit::agent::{Conversation, ConversationBuilder, ToolSource};
use toolwit::model::{ChatModel, ChatRequest, ChatResponse, ModelError};
use toolwit::strategy::ToolSources;
use toolwit::tool::ToolCall;
use toolwit::{Error, ErrorKind, Exposure, NativeTool, Phase, Tool, ToolContext, ToolResult, Toolwit};

/// The declared tools and the last message of each request.
type Requests = Arc<Mutex<Vec<(Vec<String>, String)>>>;

/// A model that returns prepared responses and records its requests.
#[derive(Clone, Default)]
struct Recorder {
    responses: Arc<Mutex<VecDeque<ChatResponse>>>,
    requests: Requests,
}

#[async_trait]
impl ChatModel for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        let names = request.tools.iter().map(|tool| tool.name.to_string()).collect();
        let last = request.messages.last().map(|message| message.content().to_owned());
        self.requests.lock().unwrap().push((names, last.unwrap_or_default()));
        let response = self.responses.lock().unwrap().pop_front();
        Ok(response.expect("the model has another response"))
    }
}

fn recorder(responses: impl IntoIterator<Item = ChatResponse>) -> Recorder {
    Recorder {
        responses: Arc::new(Mutex::new(responses.into_iter().collect())),
        ..Recorder::default()
    }
}

fn recorded(responses: impl IntoIterator<Item = ChatResponse>) -> (ConversationBuilder, Recorder) {
    let recorder = recorder(responses);
    (Conversation::builder().model(recorder.clone()), recorder)
}

fn answer(text: &str) -> ChatResponse {
    ChatResponse::new(text.to_owned(), Vec::new())
}

fn call(tool: &str, arguments: Value) -> ChatResponse {
    let call = ToolCall {
        id: format!("call-{tool}"),
        name: tool.to_owned(),
        arguments: arguments.to_string(),
    };
    ChatResponse::new(String::new(), vec![call])
}

fn native(name: &str, description: &str) -> Arc<dyn Tool> {
    let result = format!("{name} ran");
    let tool = NativeTool::new(name, description, json!({"type": "object"}), move |_, _| {
        let result = result.clone();
        async move { Ok(ToolResult::text(result)) }
    });
    Arc::new(tool.unwrap())
}

/// A server whose tools change, and that may be out of reach.
#[derive(Clone, Default)]
struct ChangingServer {
    tools: Arc<Mutex<Vec<Arc<dyn Tool>>>>,
    is_reachable: Arc<AtomicBool>,
}

impl ChangingServer {
    fn with(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let server = Self::default();
        server.is_reachable.store(true, Ordering::Relaxed);
        server.tools.lock().unwrap().extend(tools);
        server
    }

    /// Returns a tool that adds another when it is called.
    fn growing(&self) -> Arc<dyn Tool> {
        let tools = self.tools.clone();
        let grow = NativeTool::new("grow", "Adds a tool.", json!({"type": "object"}), move |_, _| {
            tools.lock().unwrap().push(native("grown", "Was added."));
            async { Ok(ToolResult::text("grown")) }
        });
        Arc::new(grow.unwrap())
    }
}

#[async_trait]
impl ToolSource for ChangingServer {
    fn name(&self) -> &str {
        "changing"
    }

    fn cached_tools(&self, _context: &ToolContext) -> Option<Vec<Arc<dyn Tool>>> {
        Some(self.tools.lock().unwrap().clone())
    }

    async fn tools(&self, _context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        if self.is_reachable.load(Ordering::Relaxed) {
            return Ok(self.tools.lock().unwrap().clone());
        }
        Err(Error::new(ErrorKind::Io, Phase::Load, "the server is gone"))
    }
}

fn sources(servers: impl IntoIterator<Item = ChangingServer>) -> ToolSources {
    ToolSources::new(
        servers
            .into_iter()
            .map(|server| Arc::new(server) as Arc<dyn ToolSource>),
    )
}

fn names(recorder: &Recorder, request: usize) -> Vec<String> {
    recorder.requests.lock().unwrap()[request].0.clone()
}

/// A server that starts only after it was released.
#[derive(Clone, Default)]
struct SlowServer {
    is_started: Arc<AtomicBool>,
    released: Arc<tokio::sync::Notify>,
}

#[async_trait]
impl ToolSource for SlowServer {
    fn name(&self) -> &str {
        "slow"
    }

    fn cached_tools(&self, _context: &ToolContext) -> Option<Vec<Arc<dyn Tool>>> {
        let is_started = self.is_started.load(Ordering::Relaxed);
        is_started.then(|| vec![native("late", "Comes late.")])
    }

    fn is_starting(&self, _context: &ToolContext) -> bool {
        !self.is_started.load(Ordering::Relaxed)
    }

    async fn tools(&self, context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        self.released.notified().await;
        self.is_started.store(true, Ordering::Relaxed);
        Ok(self.cached_tools(context).unwrap_or_default())
    }
}

#[tokio::test(start_paused = true)]
async fn the_model_learns_which_servers_are_starting_and_can_wait_for_them() {
    let server = SlowServer::default();
    let host = Toolwit::builder().shared_source(server.clone()).build().await.unwrap();
    let recorder = recorder([
        call("wait_for_servers", json!({})),
        call("late", json!({})),
        answer("done"),
    ]);
    let mut conversation = host.conversation().model(recorder.clone()).build().unwrap();
    // The first permit releases the query of the turn, if it still waits; the paused clock ends it instead.
    let released = server.released.clone();
    let release = tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_secs(40)).await;
        released.notify_waiters();
    });
    conversation.run("go").await.unwrap();
    release.await.unwrap();
    assert_eq!(names(&recorder, 0), ["wait_for_servers"]);
    assert!(names(&recorder, 1).contains(&"late".to_owned()));
    let requests = recorder.requests.lock().unwrap();
    assert_eq!(requests[1].1, "`slow` is ready");
    assert_eq!(requests[2].1, "late ran");
}

// accept: 3
#[tokio::test]
async fn a_tool_that_a_server_adds_during_a_call_is_declared_in_the_next_request() {
    let server = ChangingServer::with([]);
    server.tools.lock().unwrap().push(server.growing());
    let (builder, recorder) = recorded([call("grow", json!({})), call("grown", json!({})), answer("done")]);
    let mut conversation = builder.strategy(sources([server])).build().unwrap();
    conversation.run("go").await.unwrap();
    assert_eq!(names(&recorder, 0), ["grow"]);
    assert_eq!(names(&recorder, 1), ["grow", "grown"]);
    assert_eq!(recorder.requests.lock().unwrap()[2].1, "grown ran");
}

// accept: 98
#[tokio::test]
async fn a_server_that_cannot_be_reached_leaves_the_others_and_comes_back() {
    let (near, far) = (
        ChangingServer::with([native("near", "")]),
        ChangingServer::with([native("far", "")]),
    );
    far.is_reachable.store(false, Ordering::Relaxed);
    far.tools.lock().unwrap().clear();
    let (builder, recorder) = recorded([answer("one"), answer("two"), answer("three")]);
    let strategy = sources([near.clone(), far.clone()]);
    let mut conversation = builder.strategy(strategy).build().unwrap();
    conversation.run("one").await.unwrap();
    assert_eq!(names(&recorder, 0), ["near"]);
    far.tools.lock().unwrap().push(native("far", ""));
    far.is_reachable.store(true, Ordering::Relaxed);
    near.is_reachable.store(false, Ordering::Relaxed);
    conversation.run("two").await.unwrap();
    assert_eq!(
        names(&recorder, 1),
        ["near", "far"],
        "tools of a source that is gone for a while stay"
    );
    near.is_reachable.store(true, Ordering::Relaxed);
    near.tools.lock().unwrap().clear();
    conversation.run("three").await.unwrap();
    assert_eq!(names(&recorder, 2), ["far"], "and go when the source removes it");
}

// accept: 103
#[tokio::test]
async fn many_tools_are_searched_and_few_are_shown() {
    for (tools_max, expected) in [
        (2, ["book_flight", "water_roses"]),
        (1, ["search_tools", "book_flight"]),
    ] {
        let server = ChangingServer::with([
            native("book_flight", "Books a flight to a city"),
            native("water_roses", "Waters roses"),
        ]);
        let host = Toolwit::builder()
            .shared_source(server)
            .tools_visible_max(tools_max)
            .build()
            .await
            .unwrap();
        let recorder = recorder([answer("done")]);
        let mut conversation = host.conversation().model(recorder.clone()).build().unwrap();
        conversation.run("book a flight to a city").await.unwrap();
        assert_eq!(names(&recorder, 0), expected);
    }
}

#[tokio::test]
async fn a_conversation_has_only_the_tools_of_sources_that_it_may_use() {
    let server = ChangingServer::with([native("read", ""), native("delete", "")]);
    for exposure in [Exposure::Flat, Exposure::Facade] {
        let host = Toolwit::builder()
            .shared_source(server.clone())
            .exposure(exposure)
            .build()
            .await
            .unwrap();
        let recorder = recorder([call("changing", json!({})), answer("done")]);
        let among = host.conversation_among(|id| id != "native#delete");
        let mut conversation = among.model(recorder.clone()).build().unwrap();
        conversation.run("go").await.unwrap();
        let shown = names(&recorder, 1);
        assert!(
            shown.contains(&"read".to_owned()) && !shown.contains(&"delete".to_owned()),
            "{exposure:?}: {shown:?}"
        );
    }
}

/// A server whose tools depend on the token of the caller, and that is out of reach for an unknown one.
struct TokenServer;

#[async_trait]
impl ToolSource for TokenServer {
    fn name(&self) -> &str {
        "token"
    }

    async fn tools(&self, context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        let token = context.text("token").unwrap_or_default().to_owned();
        let balance = {
            let text = format!("asked with {token}");
            NativeTool::new(
                "balance",
                "Returns the balance.",
                json!({"type": "object"}),
                move |_, _| {
                    let text = text.clone();
                    async move { Ok(ToolResult::text(text)) }
                },
            )
        };
        let balance: Arc<dyn Tool> = Arc::new(balance.unwrap());
        match token.as_str() {
            "ann" => Ok(vec![balance, native("admin", "Administers the accounts.")]),
            "bob" => Ok(vec![balance]),
            _ => Err(Error::new(ErrorKind::Denied, Phase::Load, "the token is not valid")),
        }
    }
}

/// Runs a turn for each of three callers with the host's exposure. Returns the declared tools of the last request of each turn,
/// and the results of the calls of `balance`.
async fn turns_of_three_callers(exposure: Exposure) -> (Vec<Vec<String>>, Vec<String>) {
    let host = Toolwit::builder().shared_source(TokenServer).exposure(exposure);
    let host = host.build().await.unwrap();
    let ask = || [call("balance", json!({})), answer("done")];
    let open = || (exposure == Exposure::Facade).then(|| call("token", json!({})));
    let steps = open().into_iter().chain(ask()).chain(ask()).chain(ask());
    let recorder = recorder(steps);
    let mut conversation = host.conversation().model(recorder.clone()).build().unwrap();
    let (mut declared, mut results) = (Vec::new(), Vec::new());
    for token in ["ann", "bob", "eve"] {
        let context = ToolContext::new().with("token", token);
        let turn = conversation.turn("Return the balance of the accounts").context(context);
        turn.run().await.unwrap();
        let requests = recorder.requests.lock().unwrap();
        let (names, last_message) = requests.last().unwrap().clone();
        declared.push(names);
        results.push(last_message);
    }
    (declared, results)
}

// accept: 99, accept: 118
#[tokio::test]
async fn the_tools_of_a_source_are_those_of_the_caller_of_each_turn() {
    for exposure in [Exposure::Flat, Exposure::Auto, Exposure::Search, Exposure::Facade] {
        let (declared, results) = turns_of_three_callers(exposure).await;
        assert_eq!(results[0], "asked with ann", "{exposure:?}");
        assert_eq!(results[1], "asked with bob", "{exposure:?}");
        assert!(results[2].contains("has been removed"), "{exposure:?}: {}", results[2]);
        let has = |turn: usize, name: &str| declared[turn].iter().any(|declared| declared == name);
        assert!(
            has(0, "balance") && has(1, "balance") && !has(2, "balance"),
            "{exposure:?}: {declared:?}"
        );
        assert!(!has(1, "admin") && !has(2, "admin"), "{exposure:?}: {declared:?}");
    }
}
