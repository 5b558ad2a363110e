//! Resumed runs and replays of runs that a call ended: with an error for the operator, or with a signal.

use tokio_util::sync::CancellationToken;

use super::journal::{id, pay_tool};
use super::stopping::operator_failure;
use super::*;
use crate::{
    Journal, JournalStore, MemoryJournalStore, RecordedOutcome, Recording, Replay, RunError, Trace, TraceEntry,
};
use toolwit_core::{EffectClass, Signal};

/// Stores a run that starts only a call of `tool`. Resumes it from the entries up to `ToolReturned`, and again from the
/// entries up to `ToolFinished`. Returns the outcome of the first process, and the outcomes of the resumed runs.
async fn live_and_resumed(tool: &Arc<dyn Tool>) -> (Result<RunOutcome, RunError>, Vec<Result<RunOutcome, RunError>>) {
    let first_store = MemoryJournalStore::new();
    // The first process does not have the tool `pay`.
    let step = call([(tool.definition().name(), json!({})), ("pay", json!({}))]);
    let (builder, _) = TestModel::playing([step]);
    let journal = Journal::create(&first_store, &id()).await.unwrap();
    let mut conversation = builder.tools([tool.clone()]).journal(journal).build().unwrap();
    let live = conversation.run("go").await;
    let entries = first_store.entries(&id()).await.unwrap();
    let end_of = |is_end: fn(&Event) -> bool| {
        let is_end = |entry: &TraceEntry| is_end(&entry.event);
        entries.iter().position(is_end).unwrap() + 1
    };
    let mut resumed = Vec::new();
    for end in [
        end_of(|event| matches!(event, Event::ToolReturned { .. })),
        end_of(|event| matches!(event, Event::ToolFinished { .. })),
    ] {
        let store = MemoryJournalStore::new();
        let writer = store.create(&id()).await.unwrap();
        writer.append(entries[..end].to_vec()).await.unwrap();
        drop(writer);
        let (builder, _) = TestModel::playing([]);
        let (pay, calls) = pay_tool(EffectClass::Write, "Pays.");
        let journal = Journal::open(&store, &id()).await.unwrap();
        let builder = builder.tools([tool.clone(), pay]).journal(journal);
        let mut conversation = builder.build().unwrap();
        resumed.push(conversation.resume_run(CancellationToken::new()).await.unwrap());
        assert_eq!(*calls.lock().unwrap(), 0, "no further call starts");
    }
    (live, resumed)
}

#[tokio::test]
async fn a_resumed_run_stops_with_the_operator_error_of_the_earlier_process() {
    let (live, resumed) = live_and_resumed(&operator_failure("db")).await;
    let live = live.unwrap_err();
    for resumed in resumed {
        let resumed = resumed.unwrap_err();
        let (RunFailure::Tool(error), RunFailure::Tool(expected)) = (&resumed.failure, &live.failure) else {
            panic!("{resumed}")
        };
        assert_eq!((error.kind, error.to_string()), (expected.kind, expected.to_string()));
        assert!(error.to_string().contains("db.internal"), "{error}");
        assert_valid(&resumed.outcome.history);
        let answers = tool_results(&resumed.outcome.history);
        assert_eq!(answers[0], tool_results(&live.outcome.history)[0]);
        assert!(!answers[0].contains("db.internal"), "{}", answers[0]);
        assert!(answers[1].contains("not run: another tool"), "{}", answers[1]);
    }
}

#[tokio::test]
async fn no_further_call_of_a_resumed_run_starts_after_a_signal() {
    let stop = tool("stop", |_, _| {
        Ok(ToolResult::text("enough").with_signal(Signal::terminate("enough")))
    });
    let (live, resumed) = live_and_resumed(&stop).await;
    let live = live.unwrap();
    for resumed in resumed {
        let resumed = resumed.unwrap();
        assert_eq!((resumed.stop, &resumed.signal), (live.stop, &live.signal));
        assert!(tool_results(&resumed.history)[1].contains("not run: another tool"));
    }
}

#[tokio::test]
async fn a_replay_ends_with_the_recorded_operator_error() {
    let trace = Arc::new(Trace::new(Vec::new()));
    let (builder, _) = TestModel::playing([call([("db", json!({}))])]);
    let builder = builder.journal(Journal::unstored()).shared_observer(trace.clone());
    let mut conversation = builder.tools([operator_failure("db")]).build().unwrap();
    conversation.run("go").await.unwrap_err();
    drop(conversation);
    let trace = String::from_utf8(Arc::into_inner(trace).unwrap().into_inner()).unwrap();
    let replay = Replay::new(Recording::parse(&trace).unwrap()).start();
    let builder = Conversation::builder().tools([operator_failure("db")]).replay(&replay);
    let mut conversation = builder.build().unwrap();
    let failed = conversation.run_replay(&replay, CancellationToken::new()).await;
    let failed = failed.unwrap().unwrap_err();
    assert!(failed.report().message.contains("db.internal"), "{failed}");
    assert!(replay.differences().is_empty(), "{:?}", replay.differences());
    assert!(replay.divergence().is_none());
}

#[test]
fn an_outcome_of_an_earlier_version_is_a_result() {
    let outcome = json!({"text": "failed", "is_error": true, "kind": "configuration"});
    let outcome: RecordedOutcome = serde_json::from_value(outcome).unwrap();
    let result = outcome.into_returned().unwrap();
    assert!(result.is_error() && result.content() == "failed");
}
