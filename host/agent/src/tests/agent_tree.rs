//! Agents inside agents: the origins of their events, their call ids, budgets and failures.

use super::*;
use toolwit_core::{Error, ErrorKind, OutputSink, Phase};

/// The events that an observer received, with their origins.
type ObservedEvents = Arc<Mutex<Vec<(Event, Origin)>>>;

/// An output that records progress, and streamed text with its origin.
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

    fn model_text(&self, text: &str, origin: &Origin) {
        self.words.lock().unwrap().push((text.to_owned(), origin.clone()));
    }
}

/// Returns an agent, and its model, which plays these steps.
fn agent(name: &str, steps: impl IntoIterator<Item = Step>) -> (AgenticTool, TestModel) {
    let (_, model) = TestModel::playing(steps);
    (AgenticTool::new(name, "Works.").with_model(model.clone()), model)
}

/// Returns the arguments of a call of an agent.
fn task() -> Value {
    json!({"task": "go"})
}

fn calls_budget(calls_max: u32) -> Budget {
    Budget {
        calls_max: Some(calls_max),
        ..Budget::default()
    }
}

/// Adds an observer that records all events.
fn observe(builder: ConversationBuilder) -> (ConversationBuilder, ObservedEvents) {
    let events = ObservedEvents::default();
    let recorder = events.clone();
    let builder = builder
        .observer(move |event: &Event, origin: &Origin| recorder.lock().unwrap().push((event.clone(), origin.clone())));
    (builder, events)
}

/// Runs a conversation with an agent that calls the tool `progress`. Returns the observed events, the output, and the id
/// of the conversation's process.
async fn run_with_agent(forwards_nested_events: bool) -> (Vec<(Event, Origin)>, Arc<Screen>, String) {
    let (inner, _) = agent(
        "agent",
        [call([("progress", json!({"message": "looking"}))]), reply("inner")],
    );
    let (builder, _) = TestModel::playing([call([("agent", task())]), reply("outer")]);
    let (builder, events) = observe(builder);
    let screen = Arc::new(Screen::default());
    let mut conversation = builder
        .tool(inner.with_tool(progress_tool().unwrap()))
        .output(screen.clone())
        .nested_events(forwards_nested_events)
        .build()
        .unwrap();
    conversation.run("go").await.unwrap();
    let events = events.lock().unwrap().clone();
    (events, screen, conversation.process().id().to_owned())
}

// accept: 17, accept: 87
#[tokio::test]
async fn forwarded_events_and_text_of_agents_have_their_process_and_parent_call_as_origin() {
    let (events, screen, outer_process) = run_with_agent(true).await;
    let (inner_events, outer_events): (Vec<_>, Vec<_>) = events
        .into_iter()
        .partition(|(_, origin)| origin.process != outer_process);
    assert!(outer_events.iter().all(|(_, origin)| origin.parent_call.is_none()));
    let agent_call = outer_events.iter().find_map(|(event, _)| match event {
        Event::ToolStarted { id, .. } => Some(id.clone()),
        _ => None,
    });
    assert!(
        inner_events.len() > 4,
        "the events of the agent are forwarded: {inner_events:?}"
    );
    assert!(
        inner_events
            .iter()
            .all(|(_, origin)| *origin == inner_events[0].1 && origin.parent_call == agent_call)
    );
    let streamed = screen.words.lock().unwrap().clone();
    let texts: Vec<_> = streamed
        .iter()
        .map(|(text, origin)| (text.as_str(), origin.process == outer_process))
        .collect();
    assert_eq!(texts, [("inner", false), ("outer", true)]);
    assert_eq!(streamed[0].1, inner_events[0].1, "text and events have the same origin");
    let (events, _, outer_process) = run_with_agent(false).await;
    assert!(
        events.iter().all(|(_, origin)| origin.process == outer_process),
        "{events:?}"
    );
}

// accept: 102, accept: 17
#[tokio::test]
async fn progress_of_an_agent_is_one_event_of_the_process_of_the_agent() {
    let (events, screen, outer_process) = run_with_agent(true).await;
    let progress: Vec<_> = events
        .iter()
        .filter(|(event, _)| matches!(event, Event::Progress { text, .. } if text == "looking"))
        .collect();
    assert_eq!(progress.len(), 1, "{progress:?}");
    assert_ne!(progress[0].1.process, outer_process);
    assert_eq!(
        *screen.progress.lock().unwrap(),
        ["looking"],
        "the user sees the progress once"
    );
}

// accept: 10
#[tokio::test]
async fn call_ids_are_unique_in_a_run_with_its_agents() {
    let call_with_fixed_id = |name: &'static str, arguments: Value| {
        edit_response(call([(name, arguments)]), |response| {
            response.tool_calls[0].id = "call_1".to_owned()
        })
    };
    let (inner, model) = agent("agent", [call_with_fixed_id("look", json!({})), reply("inner")]);
    let (builder, _) = TestModel::playing([call_with_fixed_id("agent", task()), reply("outer")]);
    let outcome = builder.tool(inner.with_tool(echo("look"))).run("go").await.unwrap();
    let inner_history = model.request(1).messages;
    let ids = |messages: &[Message]| -> Vec<String> {
        let calls = messages.iter().flat_map(|message| message.tool_calls().to_vec());
        calls.map(|call| call.id).collect()
    };
    assert_eq!(ids(&outcome.history), ["call_1"]);
    assert_eq!(ids(&inner_history).len(), 1);
    assert_ne!(ids(&inner_history), ids(&outcome.history));
    assert_valid(&inner_history);
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
async fn the_time_limit_of_an_agent_ends_its_wait_for_background_work() {
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
async fn the_time_limit_of_a_run_ends_a_waiting_agent_and_the_error_names_the_agent() {
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
async fn the_call_budget_of_a_conversation_stops_all_its_agents_and_the_error_names_the_agent() {
    let two_calls = call([("look", json!({})), ("look", json!({}))]);
    let (deepest, deepest_model) = agent("deepest", [two_calls]);
    let (middle, middle_model) = agent("middle", [call([("deepest", task())])]);
    let (builder, outer_model) = TestModel::playing([call([("middle", task())])]);
    let middle = middle.with_tool(deepest.with_tool(echo("look")));
    let mut conversation = builder.tool(middle).budget(calls_budget(3)).build().unwrap();
    let error = conversation.run("go").await.unwrap_err();
    assert!(matches!(error.failure, RunFailure::CallLimit { max: 3 }), "{error}");
    assert_eq!(
        [deepest_model, middle_model, outer_model].map(|model| model.request_count()),
        [1, 1, 1]
    );
    assert_eq!(error.agent.as_deref(), Some("deepest"));
    assert_eq!(error.report().agent.as_deref(), Some("deepest"));
    assert!(error.to_string().starts_with("agent `deepest`: "), "{error}");
    assert_valid(&error.outcome.history);
}

// accept: 144, accept: 65
#[tokio::test]
async fn the_call_budget_of_an_agent_does_not_stop_its_caller() {
    let two_calls = call([("look", json!({})), ("look", json!({}))]);
    let (inner, _) = agent("agent", [two_calls]);
    let inner = inner.with_tool(echo("look")).with_budget(calls_budget(1));
    let (builder, _) = TestModel::playing([call([("agent", task())]), reply("It gave up.")]);
    let outcome = builder.tool(inner).budget(calls_budget(10)).run("go").await.unwrap();
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
async fn a_budget_can_be_raised_between_runs() {
    let (builder, _) = TestModel::playing([
        edit_response(reply("one"), |response| response.usage = TokenUsage::new(100, 0, 0)),
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
async fn a_run_that_cannot_begin_does_not_change_the_history() {
    let first = edit_response(reply("one"), |response| response.usage = TokenUsage::new(100, 0, 0));
    let (builder, model) = TestModel::playing([first]);
    let budget = Budget {
        tokens_max: Some(100),
        ..Budget::default()
    };
    let mut conversation = builder.budget(budget).build().unwrap();
    conversation.run("go").await.unwrap();
    let (history, event_count) = (conversation.history().to_vec(), model.events().len());
    let error = conversation.run("again").await.unwrap_err();
    assert_eq!(error.outcome.stop, StopReason::TokenLimit);
    assert_eq!(conversation.history(), history);
    assert_eq!(error.outcome.history, history);
    assert_eq!(model.events().len(), event_count, "no turn began");
    let cancel = tokio_util::sync::CancellationToken::new();
    cancel.cancel();
    let error = conversation.turn("again").cancel(cancel).run().await.unwrap_err();
    assert_eq!(error.outcome.stop, StopReason::Cancelled);
    assert_eq!(conversation.history(), history);
}
