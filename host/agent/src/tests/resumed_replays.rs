//! Replays of runs that were interrupted and resumed.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;

use super::journal::session_id;
use super::nested_events::Caller;
use super::*;
use crate::{Difference, Journal, JournalStore, MemoryJournalStore, Recording, Replay, Resolution, Trace, TraceEntry};
use toolwit_core::EffectClass;

/// Returns the tools `look`, which changes nothing, `pay`, which can change something and counts its calls, and `relay`, which
/// calls other tools.
fn tools(pay_count: &Arc<AtomicUsize>) -> Vec<Arc<dyn Tool>> {
    let schema = || json!({"type": "object"});
    let look = NativeTool::new("look", "Looks.", schema(), |_, _| async {
        Ok::<_, ToolError>(ToolResult::text("tea"))
    });
    let pay_count = pay_count.clone();
    let pay = NativeTool::new("pay", "Pays.", schema(), move |_, _| {
        pay_count.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, ToolError>(ToolResult::text("paid")) }
    });
    vec![
        Arc::new(look.unwrap().with_effect(EffectClass::Read)),
        Arc::new(pay.unwrap()),
        Caller::named("relay"),
    ]
}

fn steps() -> Vec<Step> {
    vec![
        call([
            ("look", json!({})),
            ("pay", json!({})),
            ("relay", json!({"native#look": {}})),
        ]),
        edit_response(reply("Done."), |response| response.usage = TokenUsage::new(70, 7, 0)),
    ]
}

/// Runs the steps, interrupts the run after the entry that `is_last` accepts, resumes it, and returns the trace of both
/// processes.
async fn resumed_trace(is_last: impl Fn(&TraceEntry) -> bool, resolution: Resolution) -> String {
    let full = MemoryJournalStore::new();
    let journal = Journal::create(&full, &session_id()).await.unwrap();
    let (builder, _) = TestModel::playing(steps());
    let builder = builder.tools(tools(&Arc::default())).journal(journal);
    builder.run("go").await.unwrap();
    let entries = full.entries(&session_id()).await.unwrap();
    let end = entries.iter().position(is_last).unwrap() + 1;
    let store = MemoryJournalStore::new();
    let writer = store.create(&session_id()).await.unwrap();
    writer.append(entries[..end].to_vec()).await.unwrap();
    drop(writer);
    let has_response = entries[..end]
        .iter()
        .any(|entry| matches!(entry.event, Event::ModelAnswered { .. }));
    let remaining_steps = steps().into_iter().skip(usize::from(has_response));
    let (builder, _) = TestModel::playing(remaining_steps);
    let journal = Journal::open(&store, &session_id()).await.unwrap();
    let mut conversation = builder.tools(tools(&Arc::default())).journal(journal).build().unwrap();
    for call in conversation.interrupted_run().unwrap().unresolved() {
        assert!(conversation.resolve_call(&call.id, resolution));
    }
    let resumed = conversation.resume_run(CancellationToken::new()).await.unwrap();
    let outcome = resumed.unwrap();
    assert_eq!(
        outcome.tool_calls.len(),
        3,
        "the outcome has the calls of both processes"
    );
    drop(conversation);
    let entries = store.entries(&session_id()).await.unwrap();
    let lines = entries
        .iter()
        .map(|entry| format!("{}\n", serde_json::to_string(entry).unwrap()));
    lines.collect()
}

/// Replays a trace. Returns the number of differences, and the number of calls of `pay`.
async fn replay(trace: &str) -> (Vec<Difference>, usize) {
    let pay_count = Arc::default();
    let replay = Replay::new(Recording::parse(trace).unwrap()).start();
    let builder = Conversation::builder().tools(tools(&pay_count)).replay(&replay);
    let mut conversation = builder.build().unwrap();
    let outcome = conversation
        .run_replay(&replay, CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(outcome.unwrap().text(), "Done.");
    (replay.differences(), pay_count.load(Ordering::Relaxed))
}

fn is_event(name: &'static str, number: usize) -> impl Fn(&TraceEntry) -> bool {
    let count = AtomicUsize::new(0);
    move |entry| {
        let is_named = serde_json::to_value(&entry.event).unwrap()["event"] == name;
        is_named && count.fetch_add(1, Ordering::Relaxed) + 1 == number
    }
}

// accept: 126
#[tokio::test]
async fn a_trace_of_a_resumed_run_replays_without_differences() {
    let interruptions = [
        ("model_asked", 1),
        ("model_answered", 1),
        ("tool_started", 1),
        ("tool_started", 2),
        ("tool_started", 3),
        ("nested_call_started", 1),
        ("tool_returned", 1),
        ("tool_finished", 2),
        ("model_asked", 2),
        ("model_answered", 2),
    ];
    for (name, number) in interruptions {
        for resolution in [Resolution::RunAgain, Resolution::Done, Resolution::NotDone] {
            let trace = resumed_trace(is_event(name, number), resolution).await;
            let (differences, pay_count) = replay(&trace).await;
            assert!(
                differences.is_empty(),
                "{name} {number} {resolution:?}: {differences:#?}"
            );
            assert_eq!(pay_count, 0, "a call that can change something is not repeated");
        }
    }
}

// accept: 126
#[tokio::test]
async fn a_changed_result_of_a_resumed_run_is_still_a_difference() {
    let trace = resumed_trace(is_event("tool_started", 2), Resolution::RunAgain).await;
    let changed = trace.replace("\"content\":\"tea\"", "\"content\":\"coffee\"");
    assert_ne!(trace, changed);
    let pay_count = Arc::default();
    let replay = Replay::new(Recording::parse(&changed).unwrap()).start();
    let builder = Conversation::builder().tools(tools(&pay_count)).replay(&replay);
    let mut conversation = builder.build().unwrap();
    let _ = conversation.run_replay(&replay, CancellationToken::new()).await;
    let events: Vec<_> = replay
        .differences()
        .into_iter()
        .map(|difference| difference.event)
        .collect();
    assert!(events.contains(&"tool_finished".to_owned()), "{events:?}");
}

// accept: 126
#[tokio::test]
async fn a_trace_with_an_interrupted_answer_replays_without_differences() {
    let trace = Arc::new(Trace::new(Vec::new()));
    let cancelled: Step = Box::new(|request| {
        request.emit_text("Rome is");
        Err(ModelError::Cancelled)
    });
    let (builder, _) = TestModel::playing([cancelled, reply("Done.")]);
    let builder = builder.tools(tools(&Arc::default())).journal(Journal::unstored());
    let builder = builder.shared_observer(trace.clone());
    let mut conversation = builder.build().unwrap();
    conversation.run("one").await.unwrap_err();
    conversation.run("two").await.unwrap();
    drop(conversation);
    let text = String::from_utf8(Arc::into_inner(trace).unwrap().into_inner()).unwrap();
    let (differences, _) = replay(&text).await;
    assert!(differences.is_empty(), "{differences:#?}");
}

/// Returns the builder of a conversation whose agent calls `look`. The models do not give ids to their calls.
fn builder_with_agent() -> ConversationBuilder {
    let without_ids = |step: Step| edit_response(step, |response| response.tool_calls[0].id.clear());
    let (_, agent_model) = TestModel::playing([without_ids(call([("look", json!({}))])), reply("ok")]);
    let agent = AgenticTool::new("agent", "Works.")
        .with_model(agent_model)
        .with_tools(tools(&Arc::default()));
    let steps = [
        without_ids(call([("agent", json!({"task": "go"}))])),
        without_ids(call([("look", json!({}))])),
        reply("Done."),
    ];
    let (builder, _) = TestModel::playing(steps);
    builder.tools(tools(&Arc::default())).tool(agent).nested_events(true)
}

// accept: 126
#[tokio::test]
async fn the_calls_after_an_agent_have_the_recorded_ids_although_the_agent_does_not_run_again() {
    let trace = Arc::new(Trace::new(Vec::new()));
    let builder = builder_with_agent().journal(Journal::unstored());
    let mut conversation = builder.shared_observer(trace.clone()).build().unwrap();
    conversation.run("go").await.unwrap();
    drop(conversation);
    let text = String::from_utf8(Arc::into_inner(trace).unwrap().into_inner()).unwrap();
    assert!(text.contains("call_3"), "the agent has the id call_2");
    let replay = Replay::new(Recording::parse(&text).unwrap()).start();
    let mut conversation = builder_with_agent().replay(&replay).build().unwrap();
    let outcome = conversation
        .run_replay(&replay, CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(outcome.unwrap().text(), "Done.");
    assert!(replay.differences().is_empty(), "{:#?}", replay.differences());
}
