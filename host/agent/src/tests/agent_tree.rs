//! Agents in agents: origins, call ids, budgets and failures.

use super::*;
use toolwit_core::{Error, ErrorKind, OutputSink, Phase};

/// Events with their origins.
type Observed = Arc<Mutex<Vec<(Event, Origin)>>>;

/// Records progress and streamed text with its origin.
#[derive(Default)]
struct Screen {
    progress: Mutex<Vec<String>>,
    words: Mutex<Vec<(String, Origin)>>,
}

impl OutputSink for Screen {
    fn progress(&self, text: &str) {
        self.progress.lock().unwrap().push(text.to_owned());
    }

    fn communicate(&self, _: &str) {}

    fn words(&self, text: &str, origin: &Origin) {
        self.words.lock().unwrap().push((text.to_owned(), origin.clone()));
    }
}

fn agent(name: &str, steps: impl IntoIterator<Item = Step>) -> (AgenticTool, TestModel) {
    let (_, model) = TestModel::playing(steps);
    (AgenticTool::new(name, "Works.").with_model(model.clone()), model)
}

fn task() -> Value {
    json!({"task": "go"})
}

fn calls_max(calls_max: u32) -> Budget {
    Budget {
        calls_max: Some(calls_max),
        ..Budget::default()
    }
}

fn observe(builder: ConversationBuilder) -> (ConversationBuilder, Observed) {
    let observed = Observed::default();
    let sink = observed.clone();
    let builder = builder
        .observer(move |event: &Event, origin: &Origin| sink.lock().unwrap().push((event.clone(), origin.clone())));
    (builder, observed)
}

/// Runs a conversation with an agent that calls `progress`. Returns the observed events, the output, and the id of the
/// outer process.
async fn observed(are_forwarded: bool) -> (Vec<(Event, Origin)>, Arc<Screen>, String) {
    let (inner, _) = agent(
        "agent",
        [call([("progress", json!({"message": "looking"}))]), reply("inner")],
    );
    let (builder, _) = TestModel::playing([call([("agent", task())]), reply("outer")]);
    let (builder, observed) = observe(builder);
    let screen = Arc::new(Screen::default());
    let mut conversation = builder
        .tool(inner.with_tool(progress_tool().unwrap()))
        .output(screen.clone())
        .nested_events(are_forwarded)
        .build()
        .unwrap();
    conversation.run("go").await.unwrap();
    let observed = observed.lock().unwrap().clone();
    (observed, screen, conversation.process().id().to_owned())
}

// accept: 17, accept: 87
#[tokio::test]
async fn events_and_text_carry_their_process_and_parent_call_and_one_switch_forwards_them() {
    let (events, screen, outer) = observed(true).await;
    let (inner, outer_events): (Vec<_>, Vec<_>) = events.into_iter().partition(|(_, origin)| origin.process != outer);
    assert!(outer_events.iter().all(|(_, origin)| origin.parent_call.is_none()));
    let agent_call = outer_events.iter().find_map(|(event, _)| match event {
        Event::ToolStarted { id, .. } => Some(id.clone()),
        _ => None,
    });
    assert!(inner.len() > 4, "the events of the agent are forwarded: {inner:?}");
    assert!(
        inner
            .iter()
            .all(|(_, origin)| *origin == inner[0].1 && origin.parent_call == agent_call)
    );
    let words = screen.words.lock().unwrap().clone();
    let texts: Vec<_> = words
        .iter()
        .map(|(text, origin)| (text.as_str(), origin.process == outer))
        .collect();
    assert_eq!(texts, [("inner", false), ("outer", true)]);
    assert_eq!(words[0].1, inner[0].1, "text and events have the same origin");
    let (silent, _, outer) = observed(false).await;
    assert!(silent.iter().all(|(_, origin)| origin.process == outer), "{silent:?}");
}

// accept: 102, accept: 17
#[tokio::test]
async fn progress_is_one_event_of_the_process_in_which_it_is_made() {
    let (events, screen, outer) = observed(true).await;
    let progress: Vec<_> = events
        .iter()
        .filter(|(event, _)| matches!(event, Event::Progress { text, .. } if text == "looking"))
        .collect();
    assert_eq!(progress.len(), 1, "{progress:?}");
    assert_ne!(progress[0].1.process, outer);
    assert_eq!(*screen.progress.lock().unwrap(), ["looking"], "the user reads it once");
}

// accept: 10
#[tokio::test]
async fn call_ids_are_unique_in_a_run_with_its_agents() {
    let same_id = |name: &'static str, arguments: Value| {
        changed(call([(name, arguments)]), |response| {
            response.tool_calls[0].id = "call_1".to_owned()
        })
    };
    let (inner, model) = agent("agent", [same_id("look", json!({})), reply("inner")]);
    let (builder, _) = TestModel::playing([same_id("agent", task()), reply("outer")]);
    let outcome = builder.tool(inner.with_tool(echo("look"))).run("go").await.unwrap();
    let inner = model.request(1).messages;
    let ids = |messages: &[Message]| -> Vec<String> {
        let calls = messages.iter().flat_map(|message| message.tool_calls().to_vec());
        calls.map(|call| call.id).collect()
    };
    assert_eq!(ids(&outcome.history), ["call_1"]);
    assert_eq!(ids(&inner).len(), 1);
    assert_ne!(ids(&inner), ids(&outcome.history));
    assert_valid(&inner);
}

/// Returns a tool whose background work never ends.
fn endless() -> Arc<dyn Tool> {
    tool("endless", |_, context| {
        context.background_task()?.spawn(std::future::pending());
        Ok(ToolResult::background("started"))
    })
}

// accept: 85, accept: 133
#[tokio::test(start_paused = true)]
async fn the_background_work_of_an_agent_ends_with_its_limits() {
    let (inner, _) = agent("agent", [call([("endless", json!({}))]), reply("It is being made.")]);
    let limits = LoopLimits {
        wall_ms_max: 5_000,
        ..LoopLimits::default()
    };
    let (builder, _) = TestModel::playing([call([("agent", task())]), reply("It gave up.")]);
    let inner = inner.with_tool(endless()).with_limits(limits);
    let outcome = builder.tool(inner).run("go").await.unwrap();
    assert_eq!(outcome.text(), "It gave up.");
    let answer = tool_results(&outcome.history)[0];
    assert!(
        answer.contains("time limit of 5s") && answer.contains("It is being made."),
        "{answer}"
    );
}

// accept: 133
#[tokio::test(start_paused = true)]
async fn the_time_limit_of_a_run_ends_an_agent_that_waits_and_names_it() {
    let (inner, _) = agent("waiter", [call([("endless", json!({}))]), reply("Not yet.")]);
    let (builder, _) = TestModel::playing([call([("waiter", task())])]);
    let limits = LoopLimits {
        wall_ms_max: 5_000,
        ..LoopLimits::default()
    };
    let mut conversation = builder.tool(inner.with_tool(endless())).limits(limits).build().unwrap();
    let error = conversation.run("go").await.unwrap_err();
    assert_eq!(error.outcome.stop, StopReason::WallClockLimit);
    assert_eq!(error.agent.as_deref(), Some("waiter"), "{error}");
    assert_valid(&error.outcome.history);
}

// accept: 144, accept: 65
#[tokio::test]
async fn the_calls_budget_stops_every_agent_up_to_its_owner_and_the_error_names_the_agent() {
    let two_calls = call([("look", json!({})), ("look", json!({}))]);
    let (deepest, inner) = agent("deepest", [two_calls]);
    let (middle, between) = agent("middle", [call([("deepest", task())])]);
    let (builder, outer) = TestModel::playing([call([("middle", task())])]);
    let middle = middle.with_tool(deepest.with_tool(echo("look")));
    let mut conversation = builder.tool(middle).budget(calls_max(3)).build().unwrap();
    let error = conversation.run("go").await.unwrap_err();
    assert!(matches!(error.failure, RunFailure::CallLimit { max: 3 }), "{error}");
    assert_eq!(
        (inner.request_count(), between.request_count(), outer.request_count()),
        (1, 1, 1)
    );
    assert_eq!(error.agent.as_deref(), Some("deepest"));
    assert_eq!(error.report().agent.as_deref(), Some("deepest"));
    assert!(error.to_string().starts_with("agent `deepest`: "), "{error}");
    assert_valid(&error.outcome.history);
}

// accept: 144, accept: 65
#[tokio::test]
async fn the_calls_budget_of_an_agent_does_not_stop_its_caller() {
    let two_calls = call([("look", json!({})), ("look", json!({}))]);
    let (inner, _) = agent("agent", [two_calls]);
    let inner = inner.with_tool(echo("look")).with_budget(calls_max(1));
    let (builder, _) = TestModel::playing([call([("agent", task())]), reply("It gave up.")]);
    let outcome = builder.tool(inner).budget(calls_max(10)).run("go").await.unwrap();
    assert_eq!(outcome.text(), "It gave up.");
    assert!(tool_results(&outcome.history)[0].contains("limit of 1 tool calls"));
}

// accept: 133
#[tokio::test]
async fn an_operator_error_names_the_agent_in_which_it_occurred() {
    let broken = tool("db", |_, _| {
        let error = Error::new(ErrorKind::Configuration, Phase::Execute, "the database is down");
        Err(ToolError::Operator(error))
    });
    let (deepest, _) = agent("deepest", [call([("db", json!({}))])]);
    let (middle, _) = agent("middle", [call([("deepest", task())])]);
    let (builder, _) = TestModel::playing([call([("middle", task())])]);
    let middle = middle.with_tool(deepest.with_tool(broken));
    let error = builder.tool(middle).build().unwrap().run("go").await.unwrap_err();
    assert_eq!(error.agent.as_deref(), Some("deepest"));
    assert_eq!(error.to_string(), "agent `deepest`: db: the database is down");
}

// accept: 144
#[tokio::test]
async fn a_budget_can_be_raised_on_a_living_conversation() {
    let (builder, _) = TestModel::playing([
        changed(reply("one"), |response| response.usage = TokenUsage::new(100, 0, 0)),
        reply("two"),
    ]);
    let budget = |tokens_max| Budget {
        tokens_max: Some(tokens_max),
        ..Budget::default()
    };
    let mut conversation = builder.budget(budget(100)).build().unwrap();
    conversation.run("go").await.unwrap();
    assert!(conversation.run("again").await.is_err());
    conversation.set_budget(budget(200));
    assert_eq!(conversation.process().remaining().tokens, Some(100));
    assert_eq!(conversation.run("again").await.unwrap().text(), "two");
}

// accept: 3, accept: 133
#[tokio::test]
async fn a_run_that_is_refused_at_once_leaves_no_unanswered_message() {
    let first = changed(reply("one"), |response| response.usage = TokenUsage::new(100, 0, 0));
    let (builder, model) = TestModel::playing([first]);
    let budget = Budget {
        tokens_max: Some(100),
        ..Budget::default()
    };
    let mut conversation = builder.budget(budget).build().unwrap();
    conversation.run("go").await.unwrap();
    let (before, events) = (conversation.history().to_vec(), model.events().len());
    let error = conversation.run("again").await.unwrap_err();
    assert_eq!(error.outcome.stop, StopReason::TokenLimit);
    assert_eq!(conversation.history(), before);
    assert_eq!(error.outcome.history, before);
    assert_eq!(model.events().len(), events, "no turn began");
    let cancel = tokio_util::sync::CancellationToken::new();
    cancel.cancel();
    let error = conversation.turn("again").cancel(cancel).run().await.unwrap_err();
    assert_eq!(error.outcome.stop, StopReason::Cancelled);
    assert_eq!(conversation.history(), before);
}
