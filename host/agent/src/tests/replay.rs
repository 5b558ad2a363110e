//! Replays of traces.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::model::ScriptedModel;
use crate::{
    AnswerSchema, CallOrigin, Conversation, ConversationBuilder, Divergence, Journal, Recording, Replay, RunError,
    RunOutcome, StartedReplay, Trace,
};
use toolwit_core::{
    Approval, ApprovalMode, ApprovalPolicy, ApprovalRequest, Approvals, EffectClass, NativeTool, ToolDefinition,
    ToolError, ToolId, ToolResult,
};

/// Returns a tool that counts its calls, and whose result is the number of earlier calls.
fn counting_tool(name: &str, class: EffectClass, calls: &Arc<AtomicUsize>) -> NativeTool {
    let calls = calls.clone();
    let schema = json!({"type": "object"});
    let tool = NativeTool::new(name, "Counts.", schema, move |_, _| {
        let number = calls.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, ToolError>(ToolResult::text(number.to_string())) }
    });
    tool.unwrap().with_effect(class)
}

/// Records a conversation of one turn, and returns its trace.
async fn record(builder: ConversationBuilder, model: ScriptedModel) -> String {
    let trace = Arc::new(Trace::new(Vec::new()));
    let builder = builder.model(model).journal(Journal::unstored());
    let mut conversation = builder.shared_observer(trace.clone()).build().unwrap();
    conversation.run("Pay.").await.unwrap();
    drop(conversation);
    String::from_utf8(Arc::into_inner(trace).unwrap().into_inner()).unwrap()
}

/// Returns a builder with the tools `pay` and `look`. `calls` counts the calls of `pay`.
fn pay_and_look(calls: &Arc<AtomicUsize>) -> ConversationBuilder {
    Conversation::builder()
        .tool(counting_tool("pay", EffectClass::Write, calls))
        .tool(counting_tool("look", EffectClass::Read, &Arc::default()))
}

fn scripted_model() -> ScriptedModel {
    ScriptedModel::new()
        .call("pay", json!({}))
        .call("look", json!({}))
        .answer("Paid.")
}

#[tokio::test]
async fn a_write_is_answered_from_the_trace_and_a_read_runs_again() {
    let calls = Arc::default();
    let trace = record(pay_and_look(&calls), scripted_model()).await;
    let replay = Replay::new(Recording::parse(&trace).unwrap()).start();
    let mut conversation = pay_and_look(&calls).replay(&replay).build().unwrap();
    assert_eq!(conversation.run("Pay.").await.unwrap().text(), "Paid.");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert!(replay.differences().is_empty(), "{:?}", replay.differences());
    let origins: Vec<_> = replay.calls().into_iter().map(|call| call.origin).collect();
    assert_eq!(origins, [CallOrigin::Trace, CallOrigin::Executed]);
}

#[tokio::test]
async fn a_call_of_an_mcp_tool_is_answered_from_the_trace_even_if_it_changes_nothing() {
    let calls = Arc::new(AtomicUsize::default());
    let builder = || {
        let id = ToolId::from_text("mcp:shop#look");
        let definition = ToolDefinition::new(id, "look", "Looks.", json!({"type": "object"}));
        let calls = calls.clone();
        let tool = NativeTool::from_definition(definition, move |_, _| {
            calls.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, ToolError>(ToolResult::text("Tea.")) }
        });
        Conversation::builder().tool(tool.unwrap().with_effect(EffectClass::Read))
    };
    let trace = record(builder(), ScriptedModel::new().call("look", json!({})).answer("Tea.")).await;
    let replay = Replay::new(Recording::parse(&trace).unwrap()).start();
    builder().replay(&replay).build().unwrap().run("Pay.").await.unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert_eq!(replay.calls()[0].origin, CallOrigin::Trace);
}

#[tokio::test]
async fn a_changed_result_is_a_difference_and_the_next_request_ends_the_replay() {
    let calls = Arc::default();
    let trace = record(pay_and_look(&calls), scripted_model()).await;
    let replay = Replay::new(Recording::parse(&trace).unwrap()).start();
    let builder = pay_and_look(&calls).tool(counting_tool("look", EffectClass::Read, &Arc::new(AtomicUsize::new(7))));
    let mut conversation = builder.replay(&replay).build().unwrap();
    let error = replay_turns(&mut conversation, &replay).await.unwrap_err();
    let events: Vec<_> = replay
        .differences()
        .into_iter()
        .map(|difference| difference.event)
        .collect();
    assert_eq!(events, ["tool_returned", "tool_finished"]);
    let divergence = replay.divergence().unwrap();
    assert_eq!(divergence.diff, ["-result: 0", "+result: 7"]);
    assert_eq!(
        replay.recording().entries()[divergence.sequence as usize].sequence,
        divergence.sequence
    );
    assert!(error.report().message.contains(&divergence.to_string()), "{error}");
}

/// Runs the recorded turns again.
async fn replay_turns(conversation: &mut Conversation, replay: &StartedReplay) -> Result<RunOutcome, RunError> {
    conversation.run_replay(replay, CancellationToken::new()).await.unwrap()
}

/// Changes the recorded `tool_started` event of the call of `pay`: replaces the text `from` by `to`. Returns the divergence of
/// a replay of the changed trace.
async fn divergence_of_changed_call(from: &str, to: &str) -> Divergence {
    let calls = Arc::default();
    let trace = record(pay_and_look(&calls), scripted_model()).await;
    let event_line = trace
        .lines()
        .find(|line| line.contains("\"event\":\"tool_started\""))
        .unwrap();
    let changed_line = event_line.replacen(from, to, 1);
    assert_ne!(event_line, changed_line);
    let replay = Replay::new(Recording::parse(&trace.replace(event_line, &changed_line)).unwrap()).start();
    let mut conversation = pay_and_look(&calls).replay(&replay).build().unwrap();
    let error = replay_turns(&mut conversation, &replay).await.unwrap_err();
    assert_eq!(
        calls.load(Ordering::Relaxed),
        1,
        "the call ran only in the recorded run"
    );
    let divergence = replay.divergence().unwrap();
    assert!(error.report().message.contains(&divergence.to_string()), "{error}");
    assert!(replay.differences().is_empty(), "{:?}", replay.differences());
    divergence
}

#[tokio::test]
async fn a_call_with_other_arguments_ends_the_replay() {
    let divergence = divergence_of_changed_call(
        "\"arguments\":{}",
        "\"arguments\":{\"amount\":5,\"note\":\"\\u001b[31m\"}",
    )
    .await;
    assert_eq!(divergence.diff, ["-amount: 5", "-note: \"\\u001b[31m\""]);
}

#[tokio::test]
async fn a_call_of_another_tool_ends_the_replay() {
    let divergence = divergence_of_changed_call("#pay\"", "#pay_twice\"").await;
    assert!(
        divergence.diff[0].ends_with("#pay_twice") && divergence.diff[1].ends_with("#pay"),
        "{:?}",
        divergence.diff
    );
}

#[tokio::test]
async fn a_request_with_other_tools_or_instructions_ends_the_replay() {
    let calls = Arc::default();
    let trace = record(pay_and_look(&calls), scripted_model()).await;
    let with_tool = pay_and_look(&calls).tool(counting_tool("more", EffectClass::Read, &Arc::default()));
    let with_instructions = pay_and_look(&calls).system("Be brief.");
    let cases = [
        (with_tool, "+tool: more"),
        (with_instructions, "the trace has their digest only"),
    ];
    for (builder, diff_end) in cases {
        let replay = Replay::new(Recording::parse(&trace).unwrap()).start();
        let mut conversation = builder.replay(&replay).build().unwrap();
        replay_turns(&mut conversation, &replay).await.unwrap_err();
        let divergence = replay.divergence().unwrap();
        assert!(divergence.diff[0].ends_with(diff_end), "{divergence}");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn the_answer_schema_is_restored_from_the_trace() {
    let schema = AnswerSchema::new(json!({"type": "object", "properties": {"n": {"type": "integer"}}})).unwrap();
    let trace = Arc::new(Trace::new(Vec::new()));
    let model = ScriptedModel::new().answer("none").answer("{\"n\": 1}");
    let builder = Conversation::builder().model(model).journal(Journal::unstored());
    let mut conversation = builder.shared_observer(trace.clone()).build().unwrap();
    conversation.turn("Count.").run_json(&schema).await.unwrap();
    drop(conversation);
    let trace = String::from_utf8(Arc::into_inner(trace).unwrap().into_inner()).unwrap();
    let replay = Replay::new(Recording::parse(&trace).unwrap()).start();
    let mut conversation = Conversation::builder().replay(&replay).build().unwrap();
    assert_eq!(
        replay_turns(&mut conversation, &replay).await.unwrap().text(),
        "{\"n\": 1}"
    );
    assert!(replay.differences().is_empty(), "{:?}", replay.differences());
}

#[tokio::test]
async fn a_denied_call_stays_denied_in_the_replay() {
    let deny = |_: &ApprovalRequest| Approval::Denied {
        reason: "not today".to_owned(),
    };
    let policy = ApprovalPolicy::of_mode(ApprovalMode::Writes);
    let calls = Arc::default();
    let denying_builder = pay_and_look(&calls).approvals(Approvals::new(policy).with_approver(deny));
    let trace = record(denying_builder, scripted_model()).await;
    let replay = Replay::new(Recording::parse(&trace).unwrap()).start();
    let mut conversation = pay_and_look(&calls).replay(&replay).build().unwrap();
    conversation.run("Pay.").await.unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    assert!(replay.differences().is_empty(), "{:?}", replay.differences());
}

#[tokio::test]
async fn a_replay_executes_the_calls_after_its_fork() {
    let calls = Arc::default();
    let trace = record(pay_and_look(&calls), scripted_model()).await;
    let recording = Recording::parse(&trace).unwrap();
    let start = recording.calls()[0].sequence;
    let replay = Replay::new(recording).with_fork(start).start();
    let mut conversation = pay_and_look(&calls).replay(&replay).build().unwrap();
    conversation.run("Pay.").await.unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_turn_without_a_recorded_response_fails() {
    let trace = record(Conversation::builder(), ScriptedModel::new().answer("Yes.")).await;
    let replay = Replay::new(Recording::parse(&trace).unwrap()).start();
    let mut conversation = Conversation::builder().replay(&replay).build().unwrap();
    conversation.run("Pay.").await.unwrap();
    let error = conversation.run("Pay again.").await.unwrap_err();
    assert!(
        error.report().message.contains("needs response 2 of the model"),
        "{error}"
    );
}

#[test]
fn the_error_for_a_line_that_is_not_an_event_has_the_line_number() {
    let error = Recording::parse("\n{}\n").unwrap_err().to_string();
    assert!(error.starts_with("line 2: not an event"), "{error}");
    assert!(Recording::parse("").is_err());
}

#[tokio::test]
async fn the_summary_of_older_messages_comes_from_the_trace() {
    let configured = || {
        let schema = json!({"type": "object"});
        let tool = NativeTool::new("long", "Is long.", schema, |_, _| async {
            Ok::<_, ToolError>(ToolResult::text("x".repeat(2000)))
        });
        let tool = tool.unwrap().with_effect(EffectClass::Read);
        Conversation::builder().tool(tool).context_tokens_max(1500)
    };
    let call_long = |model: ScriptedModel| model.call("long", json!({}));
    let model = call_long(call_long(call_long(ScriptedModel::new())))
        .answer("three calls")
        .answer("Paid.");
    let trace = record(configured(), model).await;
    assert!(trace.contains("history_compacted"), "{trace}");
    let replay = Replay::new(Recording::parse(&trace).unwrap()).start();
    let mut conversation = configured().replay(&replay).build().unwrap();
    assert_eq!(conversation.run("Pay.").await.unwrap().text(), "Paid.");
    assert!(replay.differences().is_empty(), "{:?}", replay.differences());
}
