//! Cancellation, deadlines and failures.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::*;
use toolwit_core::{Error, ErrorKind, Phase};

/// Returns a tool that waits, and the receiver of a message for each start of the tool. The wait of a cancellable tool
/// ends when its token is cancelled. The wait of any other tool does not end.
fn stuck(name: &str, is_cancellable: bool) -> (Arc<dyn Tool>, tokio::sync::mpsc::UnboundedReceiver<()>) {
    let (running, started) = tokio::sync::mpsc::unbounded_channel();
    let tool = NativeTool::new(name, "", json!({"type": "object"}), move |_, context: ToolContext| {
        let running = running.clone();
        async move {
            running.send(()).ok();
            if is_cancellable {
                context.cancel().cancelled().await;
                return Ok(ToolResult::error("stopped half-way"));
            }
            std::future::pending().await
        }
    });
    (Arc::new(tool.unwrap()), started)
}

// accept: 133
#[tokio::test(start_paused = true)]
async fn cancellation_reaches_running_tools_and_leaves_a_valid_history() {
    let (listening, mut first) = stuck("listening", true);
    let (deaf, mut second) = stuck("deaf", false);
    let step = call([
        ("listening", json!({})),
        ("deaf", json!({})),
        ("look", json!({})),
        ("later", json!({})),
    ]);
    let (builder, _) = TestModel::playing([step, reply("Welcome back.")]);
    let cancel = CancellationToken::new();
    let mut conversation = builder.tools([listening, deaf, echo("look")]).build().unwrap();
    let run = conversation.turn("go").cancel(cancel.clone()).run();
    let canceller = async {
        first.recv().await;
        second.recv().await;
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(run, canceller);
    let error = ended.unwrap_err();
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
        assert!(request.cancel.is_cancelled(), "the model is cancelled too");
        Err(ModelError::Cancelled)
    });
    let (builder, model) = TestModel::playing([step]);
    let context = ToolContext::new().with_cancel(cancel);
    let error = builder.context(context).build().unwrap().run("go").await.unwrap_err();
    assert_eq!(error.outcome.stop, StopReason::Cancelled);
    assert_eq!(model.events_named("finished")[0]["stop"], "cancelled");
}

#[tokio::test]
async fn the_token_of_the_conversation_ends_a_turn_with_its_own_token() {
    let (listening, mut started) = stuck("listening", true);
    let (builder, _) = TestModel::playing([call([("listening", json!({}))])]);
    let conversation_token = CancellationToken::new();
    let context = ToolContext::new().with_cancel(conversation_token.clone());
    let mut conversation = builder.tools([listening]).context(context).build().unwrap();
    let run = conversation.turn("go").cancel(CancellationToken::new()).run();
    let canceller = async {
        started.recv().await;
        conversation_token.cancel();
    };
    let (ended, ()) = tokio::join!(run, canceller);
    assert_eq!(ended.unwrap_err().outcome.stop, StopReason::Cancelled);
}

// accept: 133
#[tokio::test]
async fn a_run_whose_future_is_dropped_leaves_a_valid_history() {
    let (deaf, mut started) = stuck("deaf", false);
    let (builder, model) = TestModel::playing([call([("look", json!({})), ("deaf", json!({}))]), reply("Still here.")]);
    let mut conversation = builder.tools([echo("look"), deaf]).build().unwrap();
    tokio::select! {
        _ = conversation.run("go") => panic!("the run cannot end"),
        _ = started.recv() => {}
    }
    assert_valid(conversation.history());
    assert!(tool_results(conversation.history())[1].contains("may have taken effect"));
    assert_eq!(model.events_named("finished")[0]["stop"], "cancelled");
    assert_eq!(conversation.run("again").await.unwrap().text(), "Still here.");
}

// accept: 133
#[tokio::test(start_paused = true)]
async fn the_time_limit_ends_a_run() {
    let (listening, _started) = stuck("listening", true);
    let (builder, _) = TestModel::playing([call([("listening", json!({}))])]);
    let limits = LoopLimits {
        wall_ms_max: 5_000,
        ..LoopLimits::default()
    };
    let error = builder
        .tools([listening])
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
    let failed: Step = Box::new(|_| {
        Err(ModelError::Refused {
            status: 401,
            message: "no such key".to_owned(),
        })
    });
    let (builder, _) = TestModel::playing([call([("look", json!({}))]), failed, reply("Back.")]);
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

/// Returns a tool that fails with an error for the operator.
pub(super) fn operator_failure(name: &str) -> Arc<dyn Tool> {
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
        ("nowhere", json!({})),
        ("look", json!({})),
    ]);
    let (builder, _) = TestModel::playing([step]);
    let outcome = builder
        .tools([echo("look"), operator_failure("db")])
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
    let add_late_tool = |context: &crate::injection::InjectionContext<'_>| match context.call().name.as_str() {
        "db" => crate::injection::Injection::add(vec![echo("late")]),
        _ => crate::injection::Injection::none(),
    };
    let (builder, _) = TestModel::playing([call([("db", json!({})), ("late", json!({}))])]);
    let mut conversation = builder
        .tools([operator_failure("db")])
        .strategy(add_late_tool)
        .build()
        .unwrap();
    let error = conversation.run("go").await.unwrap_err();
    assert_valid(&error.outcome.history);
    assert!(tool_results(&error.outcome.history)[1].contains("not run: another tool"));
    assert_eq!(error.outcome.tool_calls.len(), 1);
}
