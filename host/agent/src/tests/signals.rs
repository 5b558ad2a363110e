//! Signals with which tools stop a run.

use super::*;
use crate::injection::{Injection, InjectionContext};
use toolwit_core::{NoArguments, Signal, ToolExt};

/// Returns a tool that always returns this signal as its error.
fn signalling_tool(name: &str, signal: Signal) -> Arc<dyn Tool> {
    let tool = NativeTool::typed(name, "Signals.", move |_: NoArguments, _| {
        let signal = signal.clone();
        async move { Err::<(), _>(signal) }
    });
    Arc::new(tool.unwrap())
}

// accept: 86
#[tokio::test]
async fn a_signal_stops_the_run_and_leaves_a_valid_history() {
    let signals = [
        (Signal::replan("prices changed"), StopReason::ReplanRequested, None),
        (
            Signal::ask_user("Which one?"),
            StopReason::UserInputRequired,
            Some("Which one?"),
        ),
        (
            Signal::terminate("all is done"),
            StopReason::Terminated,
            Some("all is done"),
        ),
    ];
    for (signal, stop, answer) in signals {
        let step = call([("look", json!({})), ("signal", json!({})), ("late", json!({}))]);
        let (builder, model) = TestModel::playing([step, reply("Back.")]);
        let tools = [echo("look"), signalling_tool("signal", signal.clone())];
        let mut conversation = builder.tools(tools).build().unwrap();
        let outcome = conversation.run("go").await.unwrap();
        assert_eq!((outcome.stop, outcome.answer.as_deref()), (stop, answer));
        assert_eq!(outcome.signal, Some(signal.clone()));
        let results = tool_results(&outcome.history);
        assert_eq!(results[..2], ["look", &signal.to_string()]);
        assert_valid(&outcome.history);
        assert_eq!(model.request_count(), 1);
        assert_eq!(conversation.run("go on").await.unwrap().text(), "Back.");
        assert_valid(conversation.history());
    }
}

// accept: 86
#[tokio::test]
async fn calls_that_have_not_started_when_a_tool_signals_do_not_run() {
    let add_late_tool = |context: &InjectionContext<'_>| match context.call().name.as_str() {
        "signal" => Injection::add(vec![echo("late")]),
        _ => Injection::none(),
    };
    let (builder, _) = TestModel::playing([call([("signal", json!({})), ("late", json!({}))])]);
    let tools = [signalling_tool("signal", Signal::terminate("enough"))];
    let outcome = builder
        .tools(tools)
        .strategy(add_late_tool)
        .build()
        .unwrap()
        .run("go")
        .await
        .unwrap();
    assert!(
        tool_results(&outcome.history)[1].contains("stopped the run"),
        "{:?}",
        outcome.history
    );
    assert_eq!(outcome.tool_calls.len(), 1);
}

// accept: 86, accept: 147
#[tokio::test]
async fn a_replanning_decorator_stops_the_run_and_keeps_the_result() {
    let replanning = echo("find").replan_when(|result, _| (result.for_llm == "find").then(|| "it is there".to_owned()));
    let (builder, _) = TestModel::playing([call([("find", json!({}))])]);
    let outcome = builder.tool(replanning).build().unwrap().run("go").await.unwrap();
    assert_eq!(outcome.stop, StopReason::ReplanRequested);
    assert_eq!(tool_results(&outcome.history), ["find"]);
}

// accept: 76, accept: 86
#[tokio::test]
async fn a_signal_passes_through_decorators_and_a_nested_agent() {
    let (_, inner_model) = TestModel::playing([call([("deep", json!({}))])]);
    // `one_shot_per_loop` runs the tool only once in each run. Later calls return a reference to the history and this advice.
    let deep = signalling_tool("deep", Signal::ask_user("Really?"))
        .publish_artifacts()
        .with_timeout(std::time::Duration::from_secs(60))
        .one_shot_per_loop("Go on.");
    let agent = AgenticTool::new("agent", "Works.")
        .with_model(inner_model.clone())
        .with_tool(deep);
    let (builder, outer_model) = TestModel::playing([call([("agent", json!({"task": "go"}))])]);
    let outcome = builder
        .tool(agent.with_note("Careful."))
        .build()
        .unwrap()
        .run("go")
        .await
        .unwrap();
    assert_eq!(outcome.stop, StopReason::UserInputRequired);
    assert_eq!(outcome.text(), "Really?");
    assert_eq!((inner_model.request_count(), outer_model.request_count()), (1, 1));
    assert_valid(&outcome.history);
}

// accept: 75
#[tokio::test]
async fn a_return_direct_tool_ends_the_run_unless_it_fails() {
    let (builder, model) = TestModel::playing([call([("bad", json!({}))]), call([("look", json!({}))])]);
    let bad = tool("bad", |_, _| Ok(ToolResult::error("no")));
    let tools = [
        Arc::new(bad.return_direct()) as Arc<dyn Tool>,
        Arc::new(echo("look").return_direct()),
    ];
    let outcome = builder.tools(tools).build().unwrap().run("go").await.unwrap();
    assert_eq!((outcome.stop, outcome.text()), (StopReason::ReturnDirect, "look"));
    assert_eq!(model.request_count(), 2);
}
