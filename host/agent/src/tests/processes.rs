//! Processes and budgets.

use super::*;
use crate::model::{ChatModel, Cost, DescribedModel, ModelChoice, Models, Price};
use tokio_util::sync::CancellationToken;
use toolwit_core::{EffectClass, ErrorKind};

/// Returns a step whose response reports these numbers of input and output tokens.
fn with_tokens(step: Step, input: u64, output: u64) -> Step {
    edit_response(step, move |response| response.usage = TokenUsage::new(input, 0, output))
}

/// Returns an agent whose model plays these steps, and the model.
fn agent(name: &str, steps: impl IntoIterator<Item = Step>) -> (AgenticTool, TestModel) {
    let (_, model) = TestModel::playing(steps);
    (AgenticTool::new(name, "Works.").with_model(model.clone()), model)
}

fn task() -> Value {
    json!({"task": "go"})
}

// accept: 100, accept: 140, accept: 144
#[tokio::test]
async fn a_tool_reads_its_process_and_the_process_records_actions_and_usage() {
    let read_fields = Arc::new(Mutex::new(None));
    let fields = read_fields.clone();
    let look = tool("look", move |_, context| {
        let process = AgentProcess::of(&context)?;
        *fields.lock().unwrap() = Some((process.id().to_owned(), process.status(), process.goal()));
        Ok(ToolResult::text("done"))
    });
    let bad = tool("bad", |_, _| Ok(ToolResult::error("no")));
    let steps = [
        with_tokens(call([("look", json!({})), ("bad", json!({}))]), 10, 5),
        with_tokens(reply("Done."), 20, 5),
    ];
    let (builder, _) = TestModel::playing(steps);
    let mut conversation = builder.tools([look, bad]).build().unwrap();
    assert_eq!(conversation.process().status(), ProcessStatus::Ready);
    conversation.run("find it").await.unwrap();
    let process = conversation.process();
    let (id, status, goal) = read_fields.lock().unwrap().take().unwrap();
    assert_eq!(
        (id.as_str(), status, goal.as_deref()),
        (process.id(), ProcessStatus::Running, Some("find it"))
    );
    assert_eq!(process.status(), ProcessStatus::Stopped(StopReason::Answered));
    assert_eq!(process.tokens(), TokenUsage::new(30, 0, 10));
    let actions: Vec<_> = process
        .actions()
        .into_iter()
        .map(|action| (action.name.to_string(), action.is_error))
        .collect();
    assert_eq!(actions, [("look".to_owned(), false), ("bad".to_owned(), true)]);
    assert_eq!(process.tool_usage().values().map(|usage| usage.errors).sum::<u64>(), 1);
    assert_eq!(
        process.model_usage()[&(ModelUsageKind::Chat, "test".to_owned())].invocations,
        2
    );
    let error = AgentProcess::of(&ToolContext::new()).err().unwrap();
    assert_eq!(error.report().kind, ErrorKind::ToolUnavailable);
}

// accept: 100
#[tokio::test]
async fn a_cost_budget_ends_every_run_of_the_process() {
    let steps = [
        with_tokens(call([("look", json!({}))]), 1_000_000, 0),
        with_tokens(reply("Never."), 1, 1),
    ];
    let (_, model) = TestModel::playing(steps);
    let priced = DescribedModel::new(model.clone()).with_price(Price::per_million(2.0, 8.0));
    let builder = Conversation::builder().model(priced).tools([echo("look")]);
    let mut conversation = builder
        .budget(Budget {
            cost_max: Some(Cost::usd(1.5)),
            ..Budget::default()
        })
        .build()
        .unwrap();
    let error = conversation.run("go").await.unwrap_err();
    assert!(matches!(error.failure, RunFailure::CostLimit { used, .. } if used == Cost::usd(2.0)));
    assert_eq!(error.outcome.usage.cost_usd, Cost::usd(2.0));
    assert_eq!(
        error.failure.report().limit.as_ref().unwrap().limit,
        "cost_nano_usd_max"
    );
    assert_valid(&error.outcome.history);
    let repeated = conversation.run("again").await.unwrap_err();
    assert_eq!(
        (repeated.outcome.stop, model.request_count()),
        (StopReason::CostLimit, 1)
    );
    assert_valid(conversation.history());
}

// accept: 65
#[tokio::test]
async fn the_budget_of_a_nested_agent_stops_only_this_agent() {
    let (nested, inner) = agent("agent", [with_tokens(call([("look", json!({}))]), 100, 0)]);
    let nested = nested
        .with_budget(Budget {
            tokens_max: Some(100),
            ..Budget::default()
        })
        .with_tool(echo("look"));
    let (builder, _) = TestModel::playing([call([("agent", task())]), reply("It gave up.")]);
    let outcome = builder.tool(nested).build().unwrap().run("go").await.unwrap();
    assert_eq!(outcome.text(), "It gave up.");
    assert!(
        tool_results(&outcome.history)[0].contains("`agent` did not finish: the run reached its limit of 100 tokens")
    );
    assert_eq!(inner.request_count(), 1);
    assert_eq!(
        outcome.usage.tokens.input_tokens, 100,
        "the usage of the agent is charged to the outer run"
    );
}

// accept: 65, accept: 133
#[tokio::test]
async fn a_budget_exhausted_in_a_nested_agent_stops_all_outer_agents() {
    let (deepest, deepest_model) = agent(
        "deepest",
        [
            with_tokens(call([("look", json!({}))]), 60, 0),
            with_tokens(call([("look", json!({}))]), 60, 0),
        ],
    );
    let deepest = deepest.with_tool(echo("look"));
    let (middle, middle_model) = agent("middle", [call([("deepest", task())])]);
    let middle = middle.with_tool(deepest);
    let (builder, outer_model) = TestModel::playing([call([("middle", task()), ("look", json!({}))])]);
    let mut conversation = builder
        .tool(middle)
        .tools([echo("look")])
        .budget(Budget {
            tokens_max: Some(100),
            ..Budget::default()
        })
        .build()
        .unwrap();
    let error = conversation.run("go").await.unwrap_err();
    assert!(
        matches!(error.failure, RunFailure::TokenLimit { max: 100, used: 120 }),
        "{error}"
    );
    assert_eq!(
        (
            deepest_model.request_count(),
            middle_model.request_count(),
            outer_model.request_count()
        ),
        (2, 1, 1)
    );
    assert_eq!(tool_results(&error.outcome.history).len(), 2, "every call is answered");
    assert_valid(&error.outcome.history);
    assert_eq!(conversation.process().remaining().tokens, Some(0));
}

// accept: 65
#[tokio::test]
async fn the_token_limit_of_a_run_includes_the_tokens_of_nested_agents() {
    let (nested, _) = agent("agent", [with_tokens(reply("42"), 90, 20)]);
    let (builder, model) = TestModel::playing([call([("agent", task())])]);
    let limits = LoopLimits {
        tokens_max: Some(100),
        ..LoopLimits::default()
    };
    let error = builder
        .tool(nested)
        .limits(limits)
        .build()
        .unwrap()
        .run("go")
        .await
        .unwrap_err();
    assert!(matches!(error.failure, RunFailure::TokenLimit { max: 100, used: 110 }));
    assert_eq!(model.request_count(), 1);
}

#[tokio::test]
async fn the_usage_of_agents_in_an_earlier_process_counts_towards_the_budget() {
    let (store, session) = (MemoryJournalStore::new(), journal::session_id());
    let journal = Journal::create(&store, &session).await.unwrap();
    let (nested, _) = agent("agent", [with_tokens(reply("42"), 60, 20)]);
    let steps = [
        with_tokens(call([("agent", task())]), 10, 0),
        with_tokens(reply("42"), 10, 0),
    ];
    let (builder, _) = TestModel::playing(steps);
    let mut first = builder.tool(nested).journal(journal).build().unwrap();
    first.run("go").await.unwrap();
    drop(first);

    let journal = Journal::open(&store, &session).await.unwrap();
    let (nested, _) = agent("agent", []);
    let (builder, model) = TestModel::playing([reply("again")]);
    let budget = Budget {
        tokens_max: Some(100),
        ..Budget::default()
    };
    let mut second = builder.tool(nested).budget(budget).journal(journal).build().unwrap();
    assert_eq!(second.process().tokens(), TokenUsage::new(80, 0, 20));
    let refused = second.run("go").await.unwrap_err();
    assert!(matches!(refused.failure, RunFailure::TokenLimit { .. }), "{refused}");
    assert_eq!(model.request_count(), 0);
}

#[tokio::test]
async fn the_usage_of_agents_in_a_resumed_run_counts_towards_the_budget() {
    let store = journal::store_of_interrupted_run_with(EffectClass::Read, |builder| builder).await;
    let (nested, _) = agent("agent", [with_tokens(reply("42"), 60, 20)]);
    let steps = [
        with_tokens(call([("agent", task())]), 10, 0),
        with_tokens(reply("42"), 10, 0),
    ];
    let (builder, _) = TestModel::playing(steps);
    let (pay, _) = journal::pay_tool(EffectClass::Read, "Pays.");
    let open = async || Journal::open(&store, &journal::session_id()).await.unwrap();
    let mut resumed = builder.tools([pay]).tool(nested).journal(open().await).build().unwrap();
    resumed.resume_run(CancellationToken::new()).await.unwrap().unwrap();
    drop(resumed);

    let (builder, _) = TestModel::playing([]);
    let reopened = builder.journal(open().await).build().unwrap();
    assert_eq!(
        reopened.process().tokens(),
        TokenUsage::new(journal::FIRST_TOKENS + 80, 0, 20)
    );
}

// accept: 144
#[tokio::test]
async fn calls_are_charged_to_every_outer_budget() {
    let two_calls = call([("look", json!({})), ("look", json!({}))]);
    let (nested, inner) = agent("agent", [two_calls, reply("Both.")]);
    let nested = nested.with_tool(echo("look"));
    let (builder, outer) =
        TestModel::playing([call([("agent", task())]), reply("Enough."), call([("look", json!({}))])]);
    let builder = builder.tool(nested).tools([echo("look")]);
    let mut conversation = builder
        .budget(Budget {
            calls_max: Some(3),
            ..Budget::default()
        })
        .build()
        .unwrap();
    let outcome = conversation.run("go").await.unwrap();
    assert_eq!(
        (outcome.text(), inner.request_count()),
        ("Enough.", 2),
        "the model may still answer after the last call"
    );
    assert_eq!(
        conversation.process().calls(),
        3,
        "the call of the agent and the two calls that the agent made"
    );
    let error = conversation.run("again").await.unwrap_err();
    assert!(matches!(error.failure, RunFailure::CallLimit { max: 3 }), "{error}");
    assert_eq!(outer.request_count(), 3);
    assert_valid(&error.outcome.history);
}

// accept: 133
#[tokio::test(start_paused = true)]
async fn the_time_budget_of_a_process_ends_its_nested_agents() {
    let wait = NativeTool::new(
        "wait",
        "",
        json!({"type": "object"}),
        |_, context: ToolContext| async move {
            context.cancel_token().cancelled().await;
            Ok(ToolResult::text("stopped"))
        },
    );
    let (nested, _) = agent("agent", [call([("wait", json!({}))])]);
    let nested = nested.with_tool(wait.unwrap());
    let (builder, _) = TestModel::playing([call([("agent", task())])]);
    let wall = std::time::Duration::from_secs(5);
    let error = builder
        .tool(nested)
        .budget(Budget {
            wall_max: Some(wall),
            ..Budget::default()
        })
        .build()
        .unwrap()
        .run("go")
        .await;
    let error = error.unwrap_err();
    assert!(
        matches!(error.failure, RunFailure::WallClockLimit { max } if max == wall),
        "{error}"
    );
    assert_valid(&error.outcome.history);
}

// accept: 141
#[tokio::test]
async fn agents_choose_among_the_models_of_the_conversation() {
    let model_with = |step: Step| TestModel::playing([step]).1;
    let (smart, plain) = (model_with(reply("smart")), model_with(reply("unused")));
    let (builder, default_model) = TestModel::playing([
        call([("thinker", task()), ("helper", task())]),
        reply("helped"),
        reply("Done."),
    ]);
    let models = Models::new()
        .with_model("plain", plain.clone())
        .with_model("large", smart.clone())
        .with_role("smart", "large");
    let outcome = builder
        .models(models)
        .tool(AgenticTool::new("thinker", "Thinks.").with_model_choice(ModelChoice::role("smart")))
        .tool(AgenticTool::new("helper", "Helps."))
        .build()
        .unwrap()
        .run("go")
        .await
        .unwrap();
    assert_eq!(tool_results(&outcome.history), ["smart", "helped"]);
    assert_eq!(
        (
            smart.request_count(),
            plain.request_count(),
            default_model.request_count()
        ),
        (1, 0, 3)
    );
    let agent = AgenticTool::new("agent", "Works.").with_model_choice("huge");
    let arguments = task().as_object().unwrap().clone();
    let error = agent.call(arguments, &ToolContext::new()).await.unwrap_err();
    assert!(error.to_string().contains("`huge`"), "{error}");
    assert_eq!(default_model.name(), "test");
}
