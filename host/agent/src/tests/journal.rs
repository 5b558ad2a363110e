//! Conversations with a journal.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use super::*;
use crate::{AnswerSchema, Journal, JournalStore, MemoryJournalStore, Resolution, SessionId, TraceEntry};
use toolwit_core::{
    Arguments, CallAccess, CallDecision, CallOutcome, EffectClass, Error, InterceptedCall, Interception, Interceptor,
    OutcomeReview, ToolDefinition, ToolSelector,
};

/// The tokens of the first inference in the store of an interrupted run.
pub(super) const FIRST_TOKENS: u64 = 50;

pub(super) fn session_id() -> SessionId {
    "s".parse().unwrap()
}

/// Returns the tool `pay` with this effect class, and the counter of its calls.
pub(super) fn pay_tool(class: EffectClass, description: &str) -> (Arc<dyn Tool>, Arc<Mutex<u32>>) {
    let call_count = Arc::new(Mutex::new(0));
    let counter = call_count.clone();
    let tool = NativeTool::new("pay", description, json!({"type": "object"}), move |_, _| {
        *counter.lock().unwrap() += 1;
        async { Ok(ToolResult::text("paid")) }
    });
    (Arc::new(tool.unwrap().with_effect(class)), call_count)
}

/// Returns a store with a session that was interrupted during a call of `pay` with this effect class.
async fn store_of_interrupted_run(class: EffectClass) -> MemoryJournalStore {
    store_of_interrupted_run_with(class, |builder| builder).await
}

/// Returns a store like [`store_of_interrupted_run`], for a conversation that `configure` configures.
pub(super) async fn store_of_interrupted_run_with(
    class: EffectClass,
    configure: impl FnOnce(ConversationBuilder) -> ConversationBuilder,
) -> MemoryJournalStore {
    let full_store = MemoryJournalStore::new();
    let costly_call = edit_response(call([("pay", json!({}))]), |response| {
        response.usage = TokenUsage::new(FIRST_TOKENS, 0, 0);
    });
    let (builder, _) = TestModel::playing([costly_call, reply("done")]);
    let journal = Journal::create(&full_store, &session_id()).await.unwrap();
    let builder = configure(builder.tools([pay_tool(class, "Pays.").0]));
    let mut conversation = builder.journal(journal).build().unwrap();
    conversation.run("pay").await.unwrap();
    let entries = full_store.entries(&session_id()).await.unwrap();
    let is_start = |entry: &TraceEntry| matches!(entry.event, Event::ToolStarted { .. });
    let entry_count = entries.iter().position(is_start).unwrap() + 1;
    let interrupted_store = MemoryJournalStore::new();
    let writer = interrupted_store.create(&session_id()).await.unwrap();
    writer.append(entries[..entry_count].to_vec()).await.unwrap();
    interrupted_store
}

/// Opens the session of the store as a new process does, in a conversation with only this tool.
async fn reopen(store: &MemoryJournalStore, tool: Arc<dyn Tool>) -> (Conversation, TestModel) {
    let (builder, model) = TestModel::playing([reply("done")]);
    let journal = Journal::open(store, &session_id()).await.unwrap();
    (builder.tools([tool]).journal(journal).build().unwrap(), model)
}

#[tokio::test]
async fn an_interrupted_write_is_not_resumed_without_a_decision() {
    let decisions = [
        (Resolution::Done, 0),
        (Resolution::NotDone, 0),
        (Resolution::RunAgain, 1),
    ];
    for (resolution, expected_calls) in decisions {
        let store = store_of_interrupted_run(EffectClass::Write).await;
        let (tool, call_count) = pay_tool(EffectClass::Write, "Pays.");
        let (mut conversation, _) = reopen(&store, tool).await;
        let refused = conversation.resume_run(CancellationToken::new()).await.unwrap();
        assert!(matches!(refused.unwrap_err().failure, RunFailure::Tool(_)));
        let unresolved = conversation.interrupted_run().unwrap().unresolved();
        assert!(!conversation.resolve_call("other", resolution));
        assert!(conversation.resolve_call(&unresolved[0].id, resolution));
        assert!(
            !conversation.resolve_call(&unresolved[0].id, resolution),
            "the call is already decided"
        );
        let outcome = conversation
            .resume_run(CancellationToken::new())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (outcome.text(), *call_count.lock().unwrap()),
            ("done", expected_calls),
            "{resolution:?}"
        );
        assert_valid(conversation.history());
        assert!(conversation.resume_run(CancellationToken::new()).await.is_none());
    }
}

/// A tool with a grant that it did not have in the earlier process.
struct GrantedTool(Arc<dyn Tool>);

#[async_trait]
impl Tool for GrantedTool {
    fn definition(&self) -> &ToolDefinition {
        self.0.definition()
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        self.0.call(arguments, context).await
    }

    async fn access(&self, arguments: &Arguments, context: &ToolContext) -> CallAccess {
        let mut access = self.0.access(arguments, context).await;
        access.grant = vec!["files read /data".to_owned()];
        access
    }
}

#[tokio::test]
async fn a_resumed_run_names_the_tools_that_changed() {
    let redefined = pay_tool(EffectClass::Read, "Pays more.").0;
    let granted: Arc<dyn Tool> = Arc::new(GrantedTool(pay_tool(EffectClass::Read, "Pays.").0));
    for tool in [redefined, granted] {
        let store = store_of_interrupted_run(EffectClass::Read).await;
        let (mut conversation, model) = reopen(&store, tool).await;
        let resumed = conversation.resume_run(CancellationToken::new()).await;
        resumed.unwrap().unwrap();
        assert_eq!(model.events_named("run_resumed")[0]["changed"], json!(["pay"]));
    }
}

/// A tool whose first call of [`access`](Tool::access) does not end.
struct SlowAccessTool {
    tool: Arc<dyn Tool>,
    /// Whether the first call of `access` has started.
    has_started: AtomicBool,
}

#[async_trait]
impl Tool for SlowAccessTool {
    fn definition(&self) -> &ToolDefinition {
        self.tool.definition()
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        self.tool.call(arguments, context).await
    }

    async fn access(&self, arguments: &Arguments, context: &ToolContext) -> CallAccess {
        if !self.has_started.swap(true, Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        self.tool.access(arguments, context).await
    }
}

#[tokio::test]
async fn a_resume_that_is_dropped_before_its_call_starts_can_be_repeated() {
    let store = store_of_interrupted_run(EffectClass::Read).await;
    let (tool, call_count) = pay_tool(EffectClass::Read, "Pays.");
    let tool: Arc<dyn Tool> = Arc::new(SlowAccessTool {
        tool,
        has_started: AtomicBool::new(false),
    });
    let (mut conversation, _) = reopen(&store, tool).await;
    let mut dropped = Box::pin(conversation.resume_run(CancellationToken::new()));
    assert!(futures::poll!(&mut dropped).is_pending());
    drop(dropped);
    assert!(conversation.interrupted_run().is_some());
    let resumed = conversation.resume_run(CancellationToken::new()).await;
    resumed.unwrap().unwrap();
    assert_eq!(*call_count.lock().unwrap(), 1);
    assert!(conversation.interrupted_run().is_none());
}

#[tokio::test]
async fn interrupted_read_and_idempotent_calls_run_again() {
    for class in [EffectClass::Read, EffectClass::Idempotent] {
        let store = store_of_interrupted_run(class).await;
        let (tool, call_count) = pay_tool(class, "Pays.");
        let (mut conversation, model) = reopen(&store, tool).await;
        conversation
            .resume_run(CancellationToken::new())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(*call_count.lock().unwrap(), 1);
        let resumed = model.events_named("run_resumed");
        assert_eq!(resumed[0]["again"].as_array().unwrap().len(), 1);
        assert!(resumed[0].get("changed").is_none(), "the tool is the same");
        let idempotency_key = |entry: &TraceEntry| match &entry.event {
            Event::ToolStarted { start, .. } => start.as_ref().map(|start| start.key.clone()),
            _ => None,
        };
        let keys: Vec<_> = store
            .entries(&session_id())
            .await
            .unwrap()
            .iter()
            .filter_map(idempotency_key)
            .collect();
        assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
    }
}

#[tokio::test]
async fn an_interrupted_call_does_not_run_again_if_the_definition_changed() {
    let store = store_of_interrupted_run(EffectClass::Read).await;
    let (tool, call_count) = pay_tool(EffectClass::Read, "Pays in another currency.");
    let (mut conversation, _) = reopen(&store, tool).await;
    conversation
        .resume_run(CancellationToken::new())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(*call_count.lock().unwrap(), 0);
    assert!(tool_results(conversation.history())[0].contains("definition of the tool has changed"));
}

/// An interceptor that replaces the arguments of each call by `{"amount": N}`.
struct SetAmount(i64);

#[async_trait]
impl Interceptor for SetAmount {
    fn name(&self) -> &str {
        "set_amount"
    }

    async fn before(&self, _: &InterceptedCall, _: &ToolContext) -> Result<CallDecision, Error> {
        let arguments = json!({"amount": self.0}).as_object().cloned();
        Ok(CallDecision::Edit(arguments.unwrap_or_default()))
    }

    async fn after(&self, _: &InterceptedCall, _: CallOutcome, _: &ToolContext) -> Result<OutcomeReview, Error> {
        Ok(OutcomeReview::Keep)
    }
}

#[tokio::test]
async fn a_call_that_would_run_again_with_other_arguments_ends_the_run_with_a_diff() {
    let store = store_of_interrupted_run(EffectClass::Idempotent).await;
    let (tool, call_count) = pay_tool(EffectClass::Idempotent, "Pays.");
    let (builder, _) = TestModel::playing([reply("done")]);
    let journal = Journal::open(&store, &session_id()).await.unwrap();
    let guard = Arc::new(Interception::new(SetAmount(5)));
    let builder = builder.guard(ToolSelector::all(), guard).tools([tool]);
    let mut conversation = builder.journal(journal).build().unwrap();
    let resumed = conversation.resume_run(CancellationToken::new()).await.unwrap();
    let error = resumed.unwrap_err().report().message.clone();
    assert!(
        error.contains("other arguments") && error.ends_with("\n+amount: 5"),
        "{error}"
    );
    assert_eq!(*call_count.lock().unwrap(), 0);
    assert_valid(conversation.history());
}

#[tokio::test]
async fn a_new_message_ends_the_interrupted_run_with_a_valid_history() {
    let store = store_of_interrupted_run(EffectClass::Write).await;
    let (tool, call_count) = pay_tool(EffectClass::Write, "Pays.");
    let (mut conversation, _) = reopen(&store, tool).await;
    conversation.run("never mind").await.unwrap();
    assert_valid(conversation.history());
    assert!(tool_results(conversation.history())[0].contains("may have taken effect"));
    let message_count = conversation.history().len();
    drop(conversation);
    let (second, _) = reopen(&store, pay_tool(EffectClass::Write, "Pays.").0).await;
    assert!(second.interrupted_run().is_none());
    assert_eq!(
        (second.history().len(), *call_count.lock().unwrap()),
        (message_count, 0)
    );
}

#[tokio::test]
async fn the_usage_of_the_earlier_process_counts_towards_the_budget() {
    let store = MemoryJournalStore::new();
    let costly_reply = || edit_response(reply("done"), |response| response.usage = TokenUsage::new(60, 0, 0));
    let conversation_with = |journal| {
        let (builder, _) = TestModel::playing([costly_reply(), costly_reply()]);
        let budget = Budget {
            tokens_max: Some(100),
            ..Budget::default()
        };
        builder.budget(budget).journal(journal).build().unwrap()
    };
    let mut first = conversation_with(Journal::create(&store, &session_id()).await.unwrap());
    first.run("one").await.unwrap();
    drop(first);
    let mut second = conversation_with(Journal::open(&store, &session_id()).await.unwrap());
    second.run("two").await.unwrap();
    let refused = second.run("three").await.unwrap_err();
    assert!(matches!(refused.failure, RunFailure::TokenLimit { .. }), "{refused}");
}

#[tokio::test]
async fn a_journal_whose_result_has_no_call_is_refused_with_a_diff() {
    let store = MemoryJournalStore::new();
    let writer = store.create(&session_id()).await.unwrap();
    let event = Event::ToolReturned {
        id: "stray".to_owned(),
        outcome: Box::default(),
    };
    writer
        .append(vec![TraceEntry::now(0, event, Origin::default())])
        .await
        .unwrap();
    drop(writer);
    let journal = Journal::open(&store, &session_id()).await.unwrap();
    let (builder, _) = TestModel::playing([]);
    let error = builder.journal(journal).build().err().unwrap();
    assert!(error.message.contains("+ `stray`"), "{error}");
}

#[tokio::test]
async fn a_resumed_run_has_one_correction_to_make_its_answer_fit_the_schema() {
    let schema =
        || AnswerSchema::new(json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}));
    let full_store = MemoryJournalStore::new();
    let (builder, _) = TestModel::playing([call([("pay", json!({}))]), reply("{\"n\": 1}")]);
    let journal = Journal::create(&full_store, &session_id()).await.unwrap();
    let (tool, _) = pay_tool(EffectClass::Read, "Pays.");
    let mut first = builder.tools([tool]).journal(journal).build().unwrap();
    first.turn("pay").run_json(&schema().unwrap()).await.unwrap();
    let entries = full_store.entries(&session_id()).await.unwrap();
    let is_start = |entry: &TraceEntry| matches!(entry.event, Event::ToolStarted { .. });
    let entry_count = entries.iter().position(is_start).unwrap() + 1;
    let scripts = [
        (vec![reply("```json\n{\"n\": 2}\n```")], Some(2)),
        (vec![reply("two"), reply("{\"n\": 2}")], Some(2)),
        (vec![reply("two"), reply("2")], None),
    ];
    for (steps, expected) in scripts {
        let store = MemoryJournalStore::new();
        store
            .create(&session_id())
            .await
            .unwrap()
            .append(entries[..entry_count].to_vec())
            .await
            .unwrap();
        let (builder, _) = TestModel::playing(steps);
        let journal = Journal::open(&store, &session_id()).await.unwrap();
        let (tool, _) = pay_tool(EffectClass::Read, "Pays.");
        let mut conversation = builder.tools([tool]).journal(journal).build().unwrap();
        let resumed = conversation.resume_run(CancellationToken::new()).await.unwrap();
        match (resumed, expected) {
            (Ok(outcome), Some(n)) => {
                let answer: Value = serde_json::from_str(outcome.text()).unwrap();
                assert_eq!(answer, json!({"n": n}));
            }
            (Err(error), None) => assert!(matches!(error.failure, RunFailure::AnswerMalformed { .. }), "{error}"),
            (resumed, _) => panic!("{resumed:?}"),
        }
    }
}
