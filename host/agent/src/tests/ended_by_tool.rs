//! Tool calls that end their run, with an error for the operator or with a signal, and resumes and replays of such runs.

use tokio_util::sync::CancellationToken;

use super::journal::{pay_tool, session_id};
use super::stopping::operator_error_tool;
use super::*;
use crate::{
    Journal, JournalStore, MemoryJournalStore, RecordedOutcome, Recording, Replay, RunError, Trace, TraceEntry,
};
use toolwit_core::{EffectClass, Signal};

/// Runs a conversation whose model calls `tool` and `pay` in one response. The call of `tool` ends the run. Then resumes the
/// run twice: from a journal that ends with the event `ToolReturned` of this call, so that its result is not in the history yet,
/// and from a journal that ends with the event `ToolFinished`, which adds the result to the history. Returns the result of the
/// first run, and the results of the two resumed runs.
async fn run_and_resume(tool: &Arc<dyn Tool>) -> (Result<RunOutcome, RunError>, Vec<Result<RunOutcome, RunError>>) {
    let first_store = MemoryJournalStore::new();
    // With a tool `pay`, both calls would start at the same time. Without it, only the call of `tool` starts.
    let step = call([(tool.definition().name(), json!({})), ("pay", json!({}))]);
    let (builder, _) = TestModel::playing([step]);
    let journal = Journal::create(&first_store, &session_id()).await.unwrap();
    let mut conversation = builder.tools([tool.clone()]).journal(journal).build().unwrap();
    let first = conversation.run("go").await;
    let entries = first_store.entries(&session_id()).await.unwrap();
    let count_through = |is_last: fn(&Event) -> bool| {
        let is_last = |entry: &TraceEntry| is_last(&entry.event);
        entries.iter().position(is_last).unwrap() + 1
    };
    let mut resumed = Vec::new();
    for entry_count in [
        count_through(|event| matches!(event, Event::ToolReturned { .. })),
        count_through(|event| matches!(event, Event::ToolFinished { .. })),
    ] {
        let store = MemoryJournalStore::new();
        let writer = store.create(&session_id()).await.unwrap();
        writer.append(entries[..entry_count].to_vec()).await.unwrap();
        drop(writer);
        let (builder, _) = TestModel::playing([]);
        let (pay, call_count) = pay_tool(EffectClass::Write, "Pays.");
        let journal = Journal::open(&store, &session_id()).await.unwrap();
        let builder = builder.tools([tool.clone(), pay]).journal(journal);
        let mut conversation = builder.build().unwrap();
        resumed.push(conversation.resume_run(CancellationToken::new()).await.unwrap());
        assert_eq!(*call_count.lock().unwrap(), 0, "no further call starts");
    }
    (first, resumed)
}

#[tokio::test]
async fn a_resumed_run_stops_with_the_operator_error_of_the_earlier_process() {
    let (first, resumed) = run_and_resume(&operator_error_tool("db")).await;
    let first = first.unwrap_err();
    for resumed in resumed {
        let resumed = resumed.unwrap_err();
        let (RunFailure::Tool(error), RunFailure::Tool(expected)) = (&resumed.failure, &first.failure) else {
            panic!("{resumed}")
        };
        assert_eq!((error.kind, error.to_string()), (expected.kind, expected.to_string()));
        assert!(error.to_string().contains("db.internal"), "{error}");
        assert_valid(&resumed.outcome.history);
        let results = tool_results(&resumed.outcome.history);
        assert_eq!(results[0], tool_results(&first.outcome.history)[0]);
        assert!(!results[0].contains("db.internal"), "{}", results[0]);
        assert!(results[1].contains("not run: another tool"), "{}", results[1]);
    }
}

#[tokio::test]
async fn no_further_call_of_a_resumed_run_starts_after_a_signal() {
    let stop = tool("stop", |_, _| {
        Ok(ToolResult::text("enough").with_signal(Signal::terminate("enough")))
    });
    let (first, resumed) = run_and_resume(&stop).await;
    let first = first.unwrap();
    for resumed in resumed {
        let resumed = resumed.unwrap();
        assert_eq!((resumed.stop, &resumed.signal), (first.stop, &first.signal));
        assert!(tool_results(&resumed.history)[1].contains("not run: another tool"));
    }
}

#[tokio::test]
async fn a_replay_ends_with_the_recorded_operator_error() {
    let trace = Arc::new(Trace::new(Vec::new()));
    let (builder, _) = TestModel::playing([call([("db", json!({}))])]);
    let builder = builder.journal(Journal::unstored()).shared_observer(trace.clone());
    let mut conversation = builder.tools([operator_error_tool("db")]).build().unwrap();
    conversation.run("go").await.unwrap_err();
    drop(conversation);
    let trace = String::from_utf8(Arc::into_inner(trace).unwrap().into_inner()).unwrap();
    let replay = Replay::new(Recording::parse(&trace).unwrap()).start();
    let builder = Conversation::builder()
        .tools([operator_error_tool("db")])
        .replay(&replay);
    let mut conversation = builder.build().unwrap();
    let replayed = conversation.run_replay(&replay, CancellationToken::new()).await;
    let error = replayed.unwrap().unwrap_err();
    assert!(error.report().message.contains("db.internal"), "{error}");
    // A divergence ends a replay early. The differences are found by comparing the events of the replay with the trace.
    assert!(replay.differences().is_empty(), "{:?}", replay.differences());
    assert!(replay.divergence().is_none());
}

#[test]
fn an_operator_error_without_recorded_details_is_read_as_an_error_result() {
    // Earlier versions recorded an operator error without the field `operator_error`.
    let outcome = json!({"text": "failed", "is_error": true, "kind": "configuration"});
    let outcome: RecordedOutcome = serde_json::from_value(outcome).unwrap();
    let result = outcome.into_call_result().unwrap();
    assert!(result.is_error() && result.content() == "failed");
}
