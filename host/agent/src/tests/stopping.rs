//! Cancellation, time limits and failures, which end a run.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::injection::{Injection, InjectionContext};
use toolwit_core::{Error, ErrorKind, Phase};

/// Returns a tool whose calls wait, and a channel that receives a message when a call starts. A cancellable call returns
/// when its token is cancelled. Other calls never return.
fn waiting_tool(name: &str, is_cancellable: bool) -> (Arc<dyn Tool>, tokio::sync::mpsc::UnboundedReceiver<()>) {
    let (start_sender, starts) = tokio::sync::mpsc::unbounded_channel();
    let tool = NativeTool::new(name, "", json!({"type": "object"}), move |_, context: ToolContext| {
        let start_sender = start_sender.clone();
        async move {
            start_sender.send(()).ok();
            if is_cancellable {
                context.cancel_token().cancelled().await;
                return Ok(ToolResult::error("stopped half-way"));
            }
            std::future::pending().await
        }
    });
    (Arc::new(tool.unwrap()), starts)
}

// accept: 133
#[tokio::test(start_paused = true)]
async fn cancellation_reaches_running_tools_and_leaves_a_valid_history() {
    let (cancellable, mut cancellable_starts) = waiting_tool("cancellable", true);
    let (endless, mut endless_starts) = waiting_tool("endless", false);
    let step = call([
        ("cancellable", json!({})),
        ("endless", json!({})),
        ("look", json!({})),
        ("unknown", json!({})),
    ]);
    let (builder, _) = TestModel::playing([step, reply("Welcome back.")]);
    let cancel = CancellationToken::new();
    let mut conversation = builder.tools([cancellable, endless, echo("look")]).build().unwrap();
    let run = conversation.turn("go").cancel(cancel.clone()).run();
    let canceller = async {
        cancellable_starts.recv().await;
        endless_starts.recv().await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(run, canceller);
    let error = result.unwrap_err();
    assert!(matches!(error.failure, RunFailure::Cancelled));
    let answers = tool_results(&error.outcome.history);
    assert_eq!(answers[0], "stopped half-way");
    assert!(
        answers[1].contains("cancelled; it may have taken effect"),
        "{}",
        answers[1]
    );
    assert_eq!(answers[2], "look");
    assert!(answers[3].contains("unknown-tool"), "{}", answers[3]);
    assert_valid(&error.outcome.history);
    assert_eq!(conversation.run("again").await.unwrap().text(), "Welcome back.");
    assert_valid(conversation.history());
}

// accept: 133
#[tokio::test]
async fn cancellation_during_an_inference_ends_the_run() {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let step: Step = Box::new(move |request| {
        token.cancel();
        assert!(request.cancel.is_cancelled(), "the request is cancelled with the run");
        Err(ModelError::Cancelled)
    });
    let (builder, model) = TestModel::playing([step]);
    let context = ToolContext::new().with_cancel_token(cancel);
    let error = builder.context(context).build().unwrap().run("go").await.unwrap_err();
    assert_eq!(error.outcome.stop, StopReason::Cancelled);
    assert_eq!(model.events_named("finished")[0]["stop"], "cancelled");
}

#[tokio::test]
async fn cancelling_the_token_of_the_conversation_ends_a_turn_that_has_another_token() {
    let (waiting, mut starts) = waiting_tool("waiting", true);
    let (builder, _) = TestModel::playing([call([("waiting", json!({}))])]);
    let conversation_token = CancellationToken::new();
    let context = ToolContext::new().with_cancel_token(conversation_token.clone());
    let mut conversation = builder.tools([waiting]).context(context).build().unwrap();
    let run = conversation.turn("go").cancel(CancellationToken::new()).run();
    let canceller = async {
        starts.recv().await;
        conversation_token.cancel();
    };
    let (result, ()) = tokio::join!(run, canceller);
    assert_eq!(result.unwrap_err().outcome.stop, StopReason::Cancelled);
}

// accept: 133
#[tokio::test]
async fn a_run_whose_future_is_dropped_leaves_a_valid_history() {
    let (endless, mut starts) = waiting_tool("endless", false);
    let step = call([("look", json!({})), ("endless", json!({}))]);
    let (builder, model) = TestModel::playing([step, reply("Still here.")]);
    let mut conversation = builder.tools([echo("look"), endless]).build().unwrap();
    tokio::select! {
        _ = conversation.run("go") => panic!("the run cannot end"),
        _ = starts.recv() => {}
    }
    assert_valid(conversation.history());
    assert!(tool_results(conversation.history())[1].contains("may have taken effect"));
    assert_eq!(model.events_named("finished")[0]["stop"], "cancelled");
    assert_eq!(conversation.run("again").await.unwrap().text(), "Still here.");
}

// accept: 133
#[tokio::test(start_paused = true)]
async fn the_time_limit_ends_a_run() {
    let (waiting, _starts) = waiting_tool("waiting", true);
    let (builder, _) = TestModel::playing([call([("waiting", json!({}))])]);
    let limits = LoopLimits {
        wall_ms_max: 5_000,
        ..LoopLimits::default()
    };
    let error = builder
        .tools([waiting])
        .limits(limits)
        .build()
        .unwrap()
        .run("go")
        .await
        .unwrap_err();
    assert!(matches!(error.failure, RunFailure::WallClockLimit { max } if max == Duration::from_secs(5)));
    assert_eq!(tool_results(&error.outcome.history), ["stopped half-way"]);
    assert_valid(&error.outcome.history);
}

// accept: 133
#[tokio::test]
async fn a_model_that_fails_ends_the_run_with_its_error() {
    let failing_step: Step = Box::new(|_| {
        Err(ModelError::Refused {
            status: 401,
            message: "no such key".to_owned(),
        })
    });
    let (builder, _) = TestModel::playing([call([("look", json!({}))]), failing_step, reply("Back.")]);
    let mut conversation = builder.tools([echo("look")]).build().unwrap();
    let error = conversation.run("go").await.unwrap_err();
    assert!(matches!(
        error.failure,
        RunFailure::Model(ModelError::Refused { status: 401, .. })
    ));
    assert_eq!(error.outcome.stop, StopReason::ModelFailed);
    assert_valid(&error.outcome.history);
    let report = Error::from(error);
    assert_eq!((report.kind, report.phase), (ErrorKind::Model, Phase::Model));
    assert!(report.message.contains("no such key"), "{report}");
    let suggestion = report.suggestion.as_deref().unwrap();
    assert!(suggestion.contains("check the provider's key"), "{suggestion}");
    assert_eq!(conversation.run("again").await.unwrap().text(), "Back.");
}

/// Returns a tool that always fails with an error for the operator.
pub(super) fn operator_error_tool(name: &str) -> Arc<dyn Tool> {
    tool(name, |_, _| {
        let error = Error::new(
            ErrorKind::Configuration,
            Phase::Execute,
            "the database at db.internal is down",
        );
        Err(ToolError::Operator(error))
    })
}

// accept: 93
#[tokio::test]
async fn an_operator_error_stops_the_run_and_answers_every_call() {
    let step = call([
        ("look", json!({})),
        ("db", json!({})),
        ("unknown", json!({})),
        ("look", json!({})),
    ]);
    let (builder, _) = TestModel::playing([step]);
    let outcome = builder
        .tools([echo("look"), operator_error_tool("db")])
        .build()
        .unwrap()
        .run("go")
        .await;
    let error = outcome.unwrap_err();
    let RunFailure::Tool(report) = &error.failure else {
        panic!("{error}")
    };
    assert_eq!(
        (report.tool.as_deref(), report.kind),
        (Some("db"), ErrorKind::Configuration)
    );
    assert_eq!(error.outcome.stop, StopReason::ToolFailed);
    assert_valid(&error.outcome.history);
    let answers = tool_results(&error.outcome.history);
    assert_eq!(
        (answers[0], answers[3]),
        ("look", "look"),
        "a call that started is answered with its result"
    );
    assert!(
        answers[1].contains("only the operator of the tool can fix the cause") && !answers[1].contains("db.internal"),
        "{}",
        answers[1]
    );
}

// accept: 93
#[tokio::test]
async fn calls_after_an_operator_error_do_not_run() {
    let add_late_tool = |context: &InjectionContext<'_>| match context.call().name.as_str() {
        "db" => Injection::add(vec![echo("late")]),
        _ => Injection::none(),
    };
    let (builder, _) = TestModel::playing([call([("db", json!({})), ("late", json!({}))])]);
    let mut conversation = builder
        .tools([operator_error_tool("db")])
        .strategy(add_late_tool)
        .build()
        .unwrap();
    let error = conversation.run("go").await.unwrap_err();
    assert_valid(&error.outcome.history);
    assert!(tool_results(&error.outcome.history)[1].contains("not run: another tool"));
    assert_eq!(error.outcome.tool_calls.len(), 1);
}
