//! Calls that tools and agents make: their idempotency keys, their entries in the journal, and their place in a resumed run.

use std::collections::HashSet;

use tokio_util::sync::CancellationToken;

use super::journal::session_id;
use super::nested_events::Caller;
use super::*;
use crate::{
    ChildCall, IDEMPOTENCY_KEY, Journal, JournalError, JournalStore, JournalWriter, MemoryJournalStore, Resolution,
    TraceEntry,
};
use toolwit_core::{ApprovalAnswer, EffectClass, ToolDefinition, ToolId};

/// A list to which the calls of tools append.
type CallLog = Arc<Mutex<Vec<String>>>;

/// Returns a tool with this effect class. Each call appends its idempotency key to `keys`.
fn keyed_tool(name: &str, class: EffectClass, keys: &CallLog) -> Arc<dyn Tool> {
    let keys = keys.clone();
    let schema = json!({"type": "object"});
    let tool = NativeTool::new(name, "Appends its key.", schema, move |_, context| {
        let key = context.text(IDEMPOTENCY_KEY).unwrap_or("no key").to_owned();
        keys.lock().unwrap().push(key);
        async { Ok(ToolResult::text("done")) }
    });
    Arc::new(tool.unwrap().with_effect(class))
}

/// Returns a tool with this effect class. Each call appends the events that are in the store when the call runs.
fn store_reader(name: &str, class: EffectClass, store: &MemoryJournalStore, found: &CallLog) -> Arc<dyn Tool> {
    let (store, found) = (store.clone(), found.clone());
    let schema = json!({"type": "object"});
    let tool = NativeTool::new(name, "Reads the store.", schema, move |_, _| {
        let (store, found) = (store.clone(), found.clone());
        async move {
            let entries = store.entries(&session_id()).await.unwrap();
            let last = entries.last().map(|entry| serde_json::to_string(entry).unwrap());
            found.lock().unwrap().extend(last);
            Ok(ToolResult::text("done"))
        }
    });
    Arc::new(tool.unwrap().with_effect(class))
}

async fn create(store: &MemoryJournalStore) -> Journal {
    Journal::create(store, &session_id()).await.unwrap()
}

/// Returns an agent that plays these steps.
fn agent(name: &str, steps: impl IntoIterator<Item = Step>) -> AgenticTool {
    let (_, model) = TestModel::playing(steps);
    AgenticTool::new(name, "Works.").with_model(model)
}

// accept: 133
#[tokio::test]
async fn each_call_of_a_session_has_an_idempotency_key_of_its_own() {
    let keys = CallLog::default();
    let (builder, _) = TestModel::playing([
        call([
            ("charge", json!({})),
            (
                "outer",
                json!({"native#charge": {}, "native#inner": {"native#charge": {}}, "native#helper": {"task": "go"}}),
            ),
        ]),
        call([("helper", json!({"task": "go"}))]),
        reply("ok"),
    ]);
    let helper = |steps: usize| {
        let calls = (0..steps).map(|_| call([("charge", json!({}))]));
        agent("helper", calls.flat_map(|step| [step, reply("ok")])).with_tools([keyed_tool(
            "charge",
            EffectClass::Idempotent,
            &keys,
        )])
    };
    let tools = [
        Caller::named("outer"),
        Caller::named("inner"),
        keyed_tool("charge", EffectClass::Idempotent, &keys),
        Arc::new(helper(2)),
    ];
    let journal = create(&MemoryJournalStore::new()).await;
    builder.tools(tools).journal(journal).run("go").await.unwrap();
    let keys = keys.lock().unwrap().clone();
    assert_eq!(keys.len(), 5, "{keys:?}");
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 5, "{keys:?}");
    for key in ["s/1-0", "s/1-1/1", "s/1-1/2/1"] {
        assert!(keys.iter().any(|other| other == key), "{key} is not in {keys:?}");
    }
    assert!(
        keys.iter().all(|key| key.starts_with("s/") && key != "s/1-1"),
        "{keys:?}"
    );
}

// accept: 133
#[tokio::test]
async fn the_start_of_a_call_of_a_tool_or_an_agent_is_stored_before_its_effect() {
    let (store, found) = (MemoryJournalStore::new(), CallLog::default());
    let pay = || store_reader("pay", EffectClass::Write, &store, &found);
    let helper = agent("helper", [call([("pay", json!({"order": "B"}))]), reply("ok")]).with_tools([pay()]);
    let (builder, _) = TestModel::playing([
        call([
            ("outer", json!({"native#pay": {"order": "A"}})),
            ("helper", json!({"task": "go"})),
        ]),
        reply("ok"),
    ]);
    let tools = [Caller::named("outer"), Arc::new(helper) as Arc<dyn Tool>, pay()];
    let mut conversation = builder.tools(tools).journal(create(&store).await).build().unwrap();
    conversation.run("go").await.unwrap();
    let found = found.lock().unwrap().clone();
    let started = |text: &&String| text.contains("call_started") || text.contains("tool_started");
    assert_eq!(found.iter().filter(started).count(), 2, "{found:?}");
    let entries = store.entries(&session_id()).await.unwrap();
    let nested = entries.iter().find_map(|entry| match &entry.event {
        Event::NestedCallStarted(call) => Some(call.clone()),
        _ => None,
    });
    let nested = nested.unwrap();
    let start = nested.start.as_ref().unwrap();
    assert_eq!((nested.id.as_str(), nested.parent.as_str()), ("1-0/1", "1-0"));
    assert_eq!(
        (&start.arguments["order"], start.effect.class),
        (&json!("A"), EffectClass::Write)
    );
    let ended = entries.iter().find_map(|entry| match &entry.event {
        Event::NestedCallFinished(call) => call.outcome.clone(),
        _ => None,
    });
    assert_eq!(ended.unwrap().text, "done");
    let of_agent = |entry: &&TraceEntry| entry.origin.parent_call.as_deref() == Some("1-1");
    let names: Vec<_> = entries
        .iter()
        .filter(of_agent)
        .map(|entry| serde_json::to_value(&entry.event).unwrap()["event"].clone())
        .collect();
    for name in ["model_asked", "tool_started", "tool_returned", "finished"] {
        assert!(names.contains(&json!(name)), "{name} is not in {names:?}");
    }
}

/// A writer that counts its writes.
struct CountingWriter(Arc<dyn JournalWriter>, Arc<Mutex<u32>>);

#[async_trait]
impl JournalWriter for CountingWriter {
    async fn append(&self, entries: Vec<TraceEntry>) -> Result<(), JournalError> {
        *self.1.lock().unwrap() += 1;
        self.0.append(entries).await
    }

    async fn store_answer(&self, question: u64, answer: &ApprovalAnswer) -> Result<bool, JournalError> {
        self.0.store_answer(question, answer).await
    }

    async fn answer(&self, question: u64) -> Result<Option<ApprovalAnswer>, JournalError> {
        self.0.answer(question).await
    }

    async fn wait_for_answer(&self, question: u64) -> Result<ApprovalAnswer, JournalError> {
        self.0.wait_for_answer(question).await
    }
}

// accept: 133
#[tokio::test]
async fn a_call_that_changes_nothing_is_recorded_without_a_write_of_its_own() {
    let write_count = async |class: EffectClass| {
        let store = MemoryJournalStore::new();
        let count = Arc::new(Mutex::new(0));
        let writer = store.create(&session_id()).await.unwrap();
        let writer = Arc::new(CountingWriter(writer, count.clone()));
        let journal = Journal::with_writer(session_id(), writer);
        let calls: serde_json::Map<_, _> = (0..5).map(|n| (format!("native#look{n}"), json!({}))).collect();
        let (builder, _) = TestModel::playing([call([("outer", Value::Object(calls))]), reply("ok")]);
        let looks = (0..5).map(|n| keyed_tool(&format!("look{n}"), class, &CallLog::default()));
        let tools = looks.chain([Caller::named("outer")]);
        let mut conversation = builder.tools(tools).journal(journal).build().unwrap();
        conversation.run("go").await.unwrap();
        let entries = store.entries(&session_id()).await.unwrap();
        let starts = entries
            .iter()
            .filter(|entry| matches!(entry.event, Event::NestedCallStarted(_)));
        assert_eq!(starts.count(), 5, "each call has its entry");
        *count.lock().unwrap()
    };
    let (reads, writes) = (
        write_count(EffectClass::Read).await,
        write_count(EffectClass::Write).await,
    );
    assert_eq!(writes, reads + 5);
}

/// Returns a store with the entries of a run until the event that `is_last` accepts, as if the process ended there.
async fn interrupted_store(
    tools: Vec<Arc<dyn Tool>>,
    step: Step,
    is_last: impl Fn(&TraceEntry) -> bool,
) -> MemoryJournalStore {
    let full = MemoryJournalStore::new();
    let (builder, _) = TestModel::playing([step, reply("ok")]);
    let mut conversation = builder.tools(tools).journal(create(&full).await).build().unwrap();
    conversation.run("go").await.unwrap();
    let entries = full.entries(&session_id()).await.unwrap();
    let end = entries.iter().position(is_last).unwrap() + 1;
    let store = MemoryJournalStore::new();
    let writer = store.create(&session_id()).await.unwrap();
    writer.append(entries[..end].to_vec()).await.unwrap();
    store
}

/// Opens the session of a store in a new conversation.
async fn reopen(store: &MemoryJournalStore, tools: Vec<Arc<dyn Tool>>) -> Conversation {
    let (builder, _) = TestModel::playing([reply("done")]);
    let journal = Journal::open(store, &session_id()).await.unwrap();
    builder.tools(tools).journal(journal).build().unwrap()
}

fn last_nested_start(order: &'static str) -> impl Fn(&TraceEntry) -> bool {
    move |entry| match &entry.event {
        Event::NestedCallStarted(call) => call
            .start
            .as_ref()
            .is_some_and(|start| start.arguments["order"] == order),
        Event::ToolStarted { start: Some(start), .. } => start.arguments.get("order") == Some(&json!(order)),
        _ => false,
    }
}

/// Returns the ids of calls, and whether each of them ended.
fn ends(children: &[ChildCall]) -> Vec<(&str, &str, bool)> {
    let end = |child: &'_ ChildCall| child.is_error.is_some();
    children
        .iter()
        .map(|child| (child.id.as_str(), child.parent.as_str(), end(child)))
        .collect()
}

/// Returns the tools `charge`, with this effect class, and `pay_both`, which calls `charge` and `refund`.
fn payment_tools(class: EffectClass, keys: &CallLog) -> Vec<Arc<dyn Tool>> {
    vec![
        keyed_tool("charge", class, keys),
        keyed_tool("refund", class, keys),
        Caller::idempotent("pay_both"),
    ]
}

fn pay_both() -> Step {
    let arguments = json!({"native#charge": {"order": "A"}, "native#refund": {"order": "B"}});
    call([("pay_both", arguments)])
}

// accept: 133
#[tokio::test]
async fn a_call_is_not_repeated_without_a_decision_if_a_call_inside_it_may_have_changed_something() {
    let keys = CallLog::default();
    let tools = || payment_tools(EffectClass::Write, &keys);
    let store = interrupted_store(tools(), pay_both(), last_nested_start("B")).await;
    keys.lock().unwrap().clear();
    let mut conversation = reopen(&store, tools()).await;
    let refused = conversation.resume_run(CancellationToken::new()).await.unwrap();
    let error = refused.unwrap_err().to_string();
    assert!(
        error.contains("`native#charge` as call `1-0/1`, which ended and `native#refund` as call `1-0/2`"),
        "{error}"
    );
    assert!(keys.lock().unwrap().is_empty());
    let unresolved = conversation.interrupted_run().unwrap().unresolved();
    assert_eq!(
        ends(&unresolved[0].children),
        [("1-0/1", "1-0", true), ("1-0/2", "1-0", false)]
    );
    assert_eq!(unresolved[0].children[1].arguments["order"], "B");
    assert!(conversation.resolve_call("1-0", Resolution::Done));
    conversation
        .resume_run(CancellationToken::new())
        .await
        .unwrap()
        .unwrap();
    assert!(keys.lock().unwrap().is_empty(), "the call took effect");
}

// accept: 133
#[tokio::test]
async fn a_call_with_idempotent_calls_inside_it_runs_again_with_the_same_keys() {
    let keys = CallLog::default();
    let tools = || payment_tools(EffectClass::Idempotent, &keys);
    let store = interrupted_store(tools(), pay_both(), last_nested_start("A")).await;
    let first_keys = std::mem::take(&mut *keys.lock().unwrap());
    let mut conversation = reopen(&store, tools()).await;
    assert!(conversation.interrupted_run().unwrap().unresolved().is_empty());
    conversation
        .resume_run(CancellationToken::new())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(*keys.lock().unwrap(), first_keys);
    assert_eq!(first_keys, ["s/1-0/1", "s/1-0/2"]);
}

// accept: 133
#[tokio::test]
async fn the_calls_of_an_interrupted_agent_are_listed_with_their_parents_and_get_new_keys() {
    let keys = CallLog::default();
    let tools = || {
        let arguments = json!({"native#charge": {"order": "A"}});
        let steps = [call([("pay_one", arguments)]), reply("ok")];
        let charge = keyed_tool("charge", EffectClass::Idempotent, &keys);
        let helper = agent("helper", steps).with_tools([Caller::idempotent("pay_one"), charge]);
        vec![Arc::new(helper) as Arc<dyn Tool>]
    };
    let step = call([("helper", json!({"task": "go"}))]);
    let store = interrupted_store(tools(), step, last_nested_start("A")).await;
    let first_key = keys.lock().unwrap().pop().unwrap();
    let mut conversation = reopen(&store, tools()).await;
    let unresolved = conversation.interrupted_run().unwrap().unresolved();
    let children = &unresolved[0].children;
    let agent_call = children[0].id.clone();
    assert_eq!(
        ends(children),
        [
            (agent_call.as_str(), "1-0", false),
            (format!("{agent_call}/1").as_str(), agent_call.as_str(), false)
        ]
    );
    assert!(conversation.resolve_call("1-0", Resolution::RunAgain));
    conversation
        .resume_run(CancellationToken::new())
        .await
        .unwrap()
        .unwrap();
    let second_key = keys.lock().unwrap().pop().unwrap();
    assert_ne!(second_key, first_key, "another run of the agent makes other calls");
}

// accept: 10, accept: 133
#[tokio::test]
async fn a_reopened_session_does_not_give_the_id_of_a_call_of_an_agent_to_another_call() {
    let without_id = |step: Step| edit_response(step, |response| response.tool_calls[0].id.clear());
    let (store, keys) = (MemoryJournalStore::new(), CallLog::default());
    let charge = || keyed_tool("charge", EffectClass::Idempotent, &keys);
    let helper = agent("helper", [without_id(call([("charge", json!({}))])), reply("ok")]).with_tools([charge()]);
    let (builder, _) = TestModel::playing([without_id(call([("helper", json!({"task": "go"}))])), reply("ok")]);
    let mut first = builder.tool(helper).journal(create(&store).await).build().unwrap();
    first.run("go").await.unwrap();
    drop(first);
    let (builder, _) = TestModel::playing([without_id(call([("charge", json!({}))])), reply("ok")]);
    let journal = Journal::open(&store, &session_id()).await.unwrap();
    let mut second = builder.tools([charge()]).journal(journal).build().unwrap();
    second.run("go").await.unwrap();
    assert_eq!(*keys.lock().unwrap(), ["s/call_2", "s/call_3"]);
}

/// A tool that calls a tool of its own: `inner`, which is not a tool of the conversation.
struct OwnCaller {
    definition: ToolDefinition,
    inner: Arc<dyn Tool>,
}

#[async_trait]
impl Tool for OwnCaller {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        context.call_own_tool(&*self.inner, arguments).await?
    }
}

// accept: 133
#[tokio::test]
async fn a_call_of_a_tool_of_its_own_is_a_call_with_its_own_key_and_entries() {
    let (store, keys) = (MemoryJournalStore::new(), CallLog::default());
    let id = ToolId::native("outer");
    let outer = OwnCaller {
        definition: ToolDefinition::new(id, "outer", "Calls.", json!({"type": "object"})),
        inner: keyed_tool("inner", EffectClass::Write, &keys),
    };
    let (builder, model) = TestModel::playing([call([("outer", json!({"order": "A"}))]), reply("ok")]);
    let tools = [Arc::new(outer) as Arc<dyn Tool>];
    let mut conversation = builder.tools(tools).journal(create(&store).await).build().unwrap();
    conversation.run("go").await.unwrap();
    assert_eq!(*keys.lock().unwrap(), ["s/1-0/1"]);
    let started = model.events_named("nested_call_started");
    assert_eq!(
        (&started[0]["parent"], &started[0]["start"]["arguments"]["order"]),
        (&json!("1-0"), &json!("A"))
    );
}
