//! Runs that are killed at each position of their journal, and continued.

#![allow(clippy::unwrap_used)]
#![allow(clippy::print_stdout, reason = "the child reports its position to its parent")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolwit_agent::model::{ChatModel, ChatRequest, ChatResponse, ModelError};
use toolwit_agent::{
    Conversation, IDEMPOTENCY_KEY, Journal, JournalError, JournalStore, JournalWriter, LoopLimits, MemoryJournalStore,
    Resolution, SessionId, SessionSummary, TraceEntry,
};
use toolwit_core::{
    ApprovalAnswer, Arguments, EffectClass, NativeTool, Role, Tool, ToolCall, ToolContext, ToolDefinition, ToolError,
    ToolId, ToolResult,
};
use toolwit_journal::SqliteJournalStore;

/// The responses with calls, and the calls of each.
const ROUNDS: usize = 12;
const CALLS: [&str; 5] = ["pay", "look", "set", "pay", "relay"];

/// The tools of a conversation.
type Tools = [Arc<dyn Tool>; 4];

/// A tool that looks and then pays, by calls of other tools.
struct Relay(ToolDefinition);

impl Relay {
    fn new() -> Self {
        let schema = json!({"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]});
        Self(ToolDefinition::new(
            ToolId::native("relay"),
            "relay",
            "Pays through other tools.",
            schema,
        ))
    }
}

#[async_trait]
impl Tool for Relay {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let tools = context.tools().unwrap();
        tools.call_tool("native#look", arguments.clone(), context).await?;
        tools.call_tool("native#pay", arguments, context).await
    }

    fn calls_tools(&self) -> bool {
        true
    }
}

/// The effects of tools outside of the process: the number of effects by their name.
type World = Arc<Mutex<BTreeMap<String, u32>>>;

/// A store whose writer stores the entries before a position, and then fails forever, as if its process were killed.
struct KilledStore {
    store: Arc<dyn JournalStore>,
    /// The number of the first entry that is lost.
    position: u64,
    kill: fn(),
}

struct KilledWriter {
    writer: Arc<dyn JournalWriter>,
    position: u64,
    kill: fn(),
}

#[async_trait]
impl JournalWriter for KilledWriter {
    async fn append(&self, mut entries: Vec<TraceEntry>) -> Result<(), JournalError> {
        let all = entries.len();
        entries.retain(|entry| entry.sequence < self.position);
        let is_killed = entries.len() < all;
        self.writer.append(entries).await?;
        if !is_killed {
            return Ok(());
        }
        (self.kill)();
        Err(JournalError::store(std::io::Error::other("killed")))
    }

    async fn store_answer(&self, question: u64, answer: &ApprovalAnswer) -> Result<bool, JournalError> {
        self.writer.store_answer(question, answer).await
    }

    async fn answer(&self, question: u64) -> Result<Option<ApprovalAnswer>, JournalError> {
        self.writer.answer(question).await
    }

    async fn wait_for_answer(&self, question: u64) -> Result<ApprovalAnswer, JournalError> {
        self.writer.wait_for_answer(question).await
    }
}

#[async_trait]
impl JournalStore for KilledStore {
    async fn create(&self, session: &SessionId) -> Result<Arc<dyn JournalWriter>, JournalError> {
        let (position, kill) = (self.position, self.kill);
        let writer = self.store.create(session).await?;
        Ok(Arc::new(KilledWriter { writer, position, kill }))
    }

    async fn open(&self, session: &SessionId) -> Result<Arc<dyn JournalWriter>, JournalError> {
        self.store.open(session).await
    }

    async fn entries(&self, session: &SessionId) -> Result<Vec<TraceEntry>, JournalError> {
        self.store.entries(session).await
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, JournalError> {
        self.store.sessions().await
    }

    async fn fork(&self, session: &SessionId, new: &SessionId, end: Option<u64>) -> Result<(), JournalError> {
        self.store.fork(session, new, end).await
    }

    async fn remove(&self, session: &SessionId) -> Result<(), JournalError> {
        self.store.remove(session).await
    }

    async fn is_open(&self, session: &SessionId) -> Result<bool, JournalError> {
        self.store.is_open(session).await
    }

    async fn store_answer(
        &self,
        session: &SessionId,
        question: u64,
        answer: &ApprovalAnswer,
    ) -> Result<bool, JournalError> {
        self.store.store_answer(session, question, answer).await
    }

    async fn answers(&self, session: &SessionId) -> Result<BTreeMap<u64, ApprovalAnswer>, JournalError> {
        self.store.answers(session).await
    }
}

/// A model whose response follows from the history alone. `rounds` is the number of responses with calls.
struct Planner {
    rounds: usize,
}

#[async_trait]
impl ChatModel for Planner {
    fn name(&self) -> &str {
        "planner"
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        let is_response = |role: &Role| matches!(role, Role::Assistant { .. });
        let round = request
            .messages
            .iter()
            .filter(|message| is_response(&message.role))
            .count();
        if round >= self.rounds {
            return Ok(ChatResponse::new("all is paid", Vec::new()));
        }
        let calls = CALLS.iter().enumerate().map(|(index, name)| ToolCall {
            id: format!("c{round}-{index}"),
            name: (*name).to_owned(),
            arguments: json!({"of": format!("{round}-{index}")}).to_string(),
        });
        Ok(ChatResponse::new("", calls.collect()))
    }
}

/// Returns a tool that has an effect in the world through `effect`. It yields before and after, so that calls overlap.
fn tool(name: &'static str, class: EffectClass, effect: impl Fn(String) + Send + Sync + 'static) -> Arc<dyn Tool> {
    let effect = Arc::new(effect);
    let schema = json!({"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]});
    let tool = NativeTool::new(name, "Changes the world.", schema, move |arguments, context| {
        let effect = effect.clone();
        async move {
            let of = arguments["of"].as_str().unwrap_or_default().to_owned();
            tokio::task::yield_now().await;
            // The key is the same when the call runs again.
            let key = context.text(IDEMPOTENCY_KEY).unwrap_or_default().to_owned();
            effect(if name == "set" { key } else { of.clone() });
            tokio::task::yield_now().await;
            Ok(ToolResult::text(format!("{name} {of}")))
        }
    });
    Arc::new(tool.unwrap().with_effect(class))
}

fn tools(record: impl Fn(String, bool) + Clone + Send + Sync + 'static) -> Tools {
    let (pay, set, look) = (record.clone(), record.clone(), record);
    [
        tool("pay", EffectClass::Write, move |of| pay(format!("pay {of}"), false)),
        tool("set", EffectClass::Idempotent, move |key| {
            set(format!("set {key}"), true)
        }),
        tool("look", EffectClass::Read, move |of| look(format!("look {of}"), true)),
        Arc::new(Relay::new()),
    ]
}

fn in_world(world: &World) -> Tools {
    let world = world.clone();
    tools(move |effect, is_repeatable| {
        let mut world = world.lock().unwrap();
        let count = world.entry(effect).or_default();
        *count = if is_repeatable { 1 } else { *count + 1 };
    })
}

fn id() -> SessionId {
    "crash".parse().unwrap()
}

fn conversation(journal: Journal, tools: Tools, rounds: usize) -> Conversation {
    let builder = Conversation::builder()
        .model(Planner { rounds })
        .tools(tools)
        .journal(journal);
    let limits = LoopLimits {
        iterations_max: 200,
        calls_max: 1000,
        ..LoopLimits::default()
    };
    builder.limits(limits).build().unwrap()
}

/// Continues a session until its run ended. Calls that are unresolved are decided by looking at the world.
async fn complete(
    store: &dyn JournalStore,
    tools: Tools,
    rounds: usize,
    is_done: impl Fn(&str) -> bool,
) -> (String, Vec<String>) {
    let journal = Journal::open(store, &id()).await.unwrap();
    let mut conversation = conversation(journal, tools, rounds);
    let unresolved = conversation
        .interrupted_run()
        .map(|run| run.unresolved())
        .unwrap_or_default();
    if !unresolved.is_empty() {
        // Nothing is repeated unasked.
        assert!(
            conversation
                .resume_run(CancellationToken::new())
                .await
                .unwrap()
                .is_err()
        );
    }
    for call in unresolved {
        assert!(
            ["pay", "relay"].contains(&call.name.as_str()),
            "only writes are asked about"
        );
        let has_paid = call.children.iter().any(|child| child.tool.as_str() == "native#pay");
        assert!(
            call.name.as_str() == "pay"
                || has_paid
                || !is_done(&format!("pay {}", call.arguments["of"].as_str().unwrap())),
            "a payment is on disk before it takes effect"
        );
        let effect = format!("pay {}", call.arguments["of"].as_str().unwrap());
        let resolution = if is_done(&effect) {
            Resolution::Done
        } else {
            Resolution::RunAgain
        };
        assert!(conversation.resolve_call(&call.id, resolution));
    }
    let outcome = match conversation.resume_run(CancellationToken::new()).await {
        Some(outcome) => outcome.unwrap(),
        // The process was killed before the message was stored, or after the end.
        None if conversation.history().is_empty() => conversation.run("pay all").await.unwrap(),
        None => {
            let answer = conversation.history().last().unwrap().content().to_owned();
            return (answer, answers(&conversation));
        }
    };
    (outcome.text().to_owned(), answers(&conversation))
}

/// Returns the texts of the history. The result of a call that a person confirmed is not known.
fn answers(conversation: &Conversation) -> Vec<String> {
    let history = conversation.history().iter();
    history.map(|message| message.content().to_owned()).collect()
}

fn check_world(world: &BTreeMap<String, u32>, rounds: usize, position: u64) {
    assert_eq!(
        world.len(),
        // A relay looks and pays.
        rounds * (CALLS.len() + 1),
        "position {position}: nothing is lost"
    );
    let twice: Vec<_> = world.iter().filter(|(_, count)| **count != 1).collect();
    assert!(twice.is_empty(), "position {position}: {twice:?}");
}

/// Runs until the journal is killed at a position, then completes the run. Returns whether the run ended before the position.
async fn survive(position: u64) -> bool {
    let (store, world) = (MemoryJournalStore::new(), World::default());
    let killed = KilledStore {
        store: Arc::new(store.clone()),
        position,
        kill: || {},
    };
    let journal = Journal::create(&killed, &id()).await.unwrap();
    let mut first = conversation(journal, in_world(&world), ROUNDS);
    let has_ended = first.run("pay all").await.is_ok();
    drop(first);
    let stored = store.entries(&id()).await.unwrap().len() as u64;
    assert!(
        has_ended || stored == position,
        "the journal has all entries before {position}"
    );
    let is_done = |effect: &str| world.lock().unwrap().contains_key(effect);
    let (answer, history) = complete(&store, in_world(&world), ROUNDS, is_done).await;
    assert_eq!(answer, "all is paid");
    assert_eq!(history.len(), 2 + ROUNDS * (1 + CALLS.len()));
    let is_expected = |text: &&String| !text.contains("confirmed") && text.contains("may have taken effect");
    assert_eq!(history.iter().filter(is_expected).count(), 0, "position {position}");
    check_world(&world.lock().unwrap(), ROUNDS, position);
    has_ended
}

// accept: 133
#[tokio::test]
async fn a_run_that_is_killed_at_any_position_acts_exactly_once() {
    let mut position = 0;
    while !survive(position).await {
        position += 1;
    }
    assert!(position > 150, "{position} positions");
}

/// Writes effects to a file, which outlives the process.
fn in_file(path: PathBuf) -> Tools {
    tools(move |effect, _| {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .unwrap();
        std::io::Write::write_all(&mut file, format!("{effect}\n").as_bytes()).unwrap();
    })
}

/// The effects in a file. Those that can be repeated count once.
fn effects(path: &Path) -> BTreeMap<String, u32> {
    let mut effects = BTreeMap::new();
    for effect in std::fs::read_to_string(path).unwrap_or_default().lines() {
        let count = effects.entry(effect.to_owned()).or_insert(0);
        *count = if effect.starts_with("pay") { *count + 1 } else { 1 };
    }
    effects
}

/// The environment of the child: the position at which it is killed, the number of rounds, and the directory of the session.
const CHILD: &str = "TOOLWIT_CRASH_CHILD";

/// The line that the child prints when it waits to be killed.
const AT_POSITION: &str = "at the position";

/// Stops all work of the child at its position, until the parent kills it.
fn wait_for_kill() {
    println!("\n{AT_POSITION}");
    loop {
        std::thread::park();
    }
}

/// Is the child process of the tests below; does nothing otherwise.
#[allow(clippy::disallowed_methods, reason = "only the parent test sets the variable")]
#[tokio::test]
async fn child_process() {
    let Ok(setting) = std::env::var(CHILD) else { return };
    let mut parts = setting.splitn(3, ':');
    let mut part = || parts.next().unwrap();
    let (position, rounds, directory) = (part().parse().unwrap(), part().parse().unwrap(), Path::new(part()));
    let store = SqliteJournalStore::open(directory.join("sessions.db")).await.unwrap();
    let store = KilledStore {
        store: Arc::new(store),
        position,
        kill: wait_for_kill,
    };
    let journal = Journal::create(&store, &id()).await.unwrap();
    let mut conversation = conversation(journal, in_file(directory.join("effects")), rounds);
    let _ = conversation.run("pay all").await;
}

/// Starts a process with a run, kills it at a position, and completes the run. Returns whether the run ended before the position.
async fn survive_kill(position: u64, rounds: usize) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_process", "--nocapture"])
        .env(CHILD, format!("{position}:{rounds}:{}", directory.path().display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_at_position = lines.map_while(Result::ok).any(|line| line == AT_POSITION);
    // On Unix, this is SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    let path = directory.path().join("effects");
    let store = SqliteJournalStore::open(directory.path().join("sessions.db"))
        .await
        .unwrap();
    let is_done = |effect: &str| effects(&path).contains_key(effect);
    let (answer, _) = complete(&store, in_file(path.clone()), rounds, is_done).await;
    assert_eq!(answer, "all is paid");
    check_world(&effects(&path), rounds, position);
    !is_at_position
}

/// Kills a process at each position of its journal. Returns the number of positions.
async fn kill_at_each_position(rounds: usize) -> u64 {
    let mut position = 0;
    while !survive_kill(position, rounds).await {
        position += 1;
    }
    position
}

// accept: 133
#[tokio::test]
async fn a_killed_process_leaves_a_session_that_another_one_completes() {
    let positions = kill_at_each_position(1).await;
    assert!(positions > 15, "{positions} positions");
}

#[tokio::test]
#[ignore = "starts more than 1,000 processes"]
async fn a_long_run_survives_a_kill_at_each_of_a_thousand_positions() {
    let positions = kill_at_each_position(80).await;
    assert!(positions >= 1000, "{positions} positions");
}
