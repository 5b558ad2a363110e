//! Tools that are locked until a condition holds, and tools of state machines.

use super::*;
use crate::injection::{ConversationView, Playbook, StateMachine, Unlock};
use toolwit_core::Artifact;

async fn run_playbook(playbook: Playbook, steps: impl IntoIterator<Item = Step>) -> (RunOutcome, TestModel) {
    let (builder, model) = TestModel::playing(steps);
    let outcome = builder.playbook(playbook).run("go").await.unwrap();
    assert_valid(&outcome.history);
    (outcome, model)
}

/// Returns a step in which the model calls a tool without arguments.
fn invoke(name: &str) -> Step {
    call([(name, json!({}))])
}

/// Returns a tool that fails if its arguments contain `fail`.
fn fallible(name: &str) -> Arc<dyn Tool> {
    tool(name, |arguments, _| {
        Ok(if arguments.contains_key("fail") {
            ToolResult::error("failed as requested")
        } else {
            ToolResult::text("done")
        })
    })
}

/// Returns a tool whose result has an artifact of the kind `kind`.
fn artifact_tool(name: &str, kind: &'static str) -> Arc<dyn Tool> {
    tool(name, move |_, _| {
        Ok(ToolResult::text("found").with_artifact(Artifact::new(kind, json!({}))))
    })
}

// accept: 66, accept: 67
#[tokio::test]
async fn a_locked_tool_is_declared_and_returns_guidance_without_running() {
    let run_count = Arc::new(Mutex::new(0));
    let counter = run_count.clone();
    let publish = tool("publish", move |_, _| {
        *counter.lock().unwrap() += 1;
        Ok(ToolResult::text("published"))
    });
    let playbook = Playbook::new()
        .with_tool(fallible("search"))
        .with_locked_tool(publish, Unlock::by("search"));
    let fail = call([("search", json!({"fail": true}))]);
    let steps = [
        invoke("publish"),
        fail,
        invoke("publish"),
        invoke("search"),
        invoke("publish"),
        reply("ok"),
    ];
    let (outcome, model) = run_playbook(playbook, steps).await;
    assert_eq!(model.request(0).names, ["search", "publish"]);
    let results = tool_results(&outcome.history);
    assert_eq!(results[0], "`publish` is not available yet: call `search` first");
    assert_eq!(results[2], results[0], "a failed search does not unlock the tool");
    assert_eq!((results[4], *run_count.lock().unwrap()), ("published", 1));
    let is_error = |message: &Message| matches!(message.role, Role::Tool { is_error: true, .. });
    assert!(!is_error(&outcome.history[2]), "guidance is not an error");
    assert_eq!(model.events_named("call_guided").len(), 2);
    assert_eq!(model.request(5).serialised_tools, model.request(0).serialised_tools);
}

// accept: 66
#[tokio::test]
async fn all_any_and_combined_conditions_unlock_tools() {
    let playbook = Playbook::new()
        .with_tool(echo("a"))
        .with_tool(echo("b"))
        .with_locked_tool(echo("all"), Unlock::by_all(["a", "b"]))
        .with_locked_tool(echo("any"), Unlock::by_any(["a", "b"]))
        .with_locked_tool(echo("mixed"), Unlock::by("a").and(Unlock::by_any(["b", "any"])));
    let steps = [
        call([("all", json!({})), ("any", json!({})), ("mixed", json!({}))]),
        invoke("b"),
        call([("all", json!({})), ("any", json!({}))]),
        invoke("a"),
        call([("all", json!({})), ("mixed", json!({}))]),
        reply("ok"),
    ];
    let (outcome, _) = run_playbook(playbook, steps).await;
    let results = tool_results(&outcome.history);
    assert_eq!(
        results[0],
        "`all` is not available yet: call `a` first, and call `b` first"
    );
    assert_eq!(
        results[1],
        "`any` is not available yet: call `a` first, or call `b` first"
    );
    assert!(
        results[2].ends_with("call `a` first, and call `b` first, or call `any` first"),
        "{}",
        results[2]
    );
    assert_eq!(results[4], "`all` is not available yet: call `a` first");
    assert_eq!((results[5], results[7], results[8]), ("any", "all", "mixed"));
}

// accept: 66
#[tokio::test]
async fn artifacts_blackboard_objects_and_predicates_unlock_tools() {
    let put = tool("put", |_, context| {
        context
            .blackboard()?
            .put(Artifact::new("crm::Customer", json!({})))
            .map_err(ToolError::Model)?;
        Ok(ToolResult::text("put"))
    });
    let is_late = |view: &ConversationView<'_>| view.iteration() >= 4;
    let playbook = Playbook::new()
        .with_tool(artifact_tool("find", "shop/orders@1.0.0#order"))
        .with_tool(put)
        .with_locked_tool(echo("by_artifact"), Unlock::by_artifact("order"))
        .with_locked_tool(echo("by_board"), Unlock::by_blackboard("Customer"))
        .with_locked_tool(echo("late"), Unlock::when("this is for later", is_late));
    let call_locked = || call([("by_artifact", json!({})), ("by_board", json!({})), ("late", json!({}))]);
    let (outcome, _) = run_playbook(
        playbook,
        [call_locked(), invoke("find"), invoke("put"), call_locked(), reply("ok")],
    )
    .await;
    let results = tool_results(&outcome.history);
    assert!(
        results[0].ends_with("a tool must return a `order` first"),
        "{}",
        results[0]
    );
    assert!(
        results[1].ends_with("there must be a `Customer` on the blackboard first"),
        "{}",
        results[1]
    );
    assert!(results[2].ends_with("this is for later"), "{}", results[2]);
    assert_eq!(results[5..], ["by_artifact", "by_board", "late"]);
}

// accept: 129
#[tokio::test]
async fn a_call_unlocks_tools_for_the_later_calls_of_its_response() {
    let playbook = Playbook::new()
        .with_tool(echo("a"))
        .with_locked_tool(echo("b"), Unlock::by("a"));
    let steps = [
        call([
            ("b", json!({})),
            ("a", json!({})),
            ("b", json!({})),
            ("free", json!({})),
        ]),
        reply("ok"),
    ];
    let (builder, model) = TestModel::playing(steps);
    let outcome = builder
        .playbook(playbook)
        .tools([echo("free")])
        .run("go")
        .await
        .unwrap();
    let results = tool_results(&outcome.history);
    assert!(results[0].contains("not available yet"), "{}", results[0]);
    assert_eq!(results[1..], ["a", "b", "free"]);
    let started: Vec<_> = model
        .events_named("tool_started")
        .iter()
        .map(|event| event["name"].clone())
        .collect();
    assert_eq!(
        started,
        ["a", "free", "b"],
        "a tool that is not in the playbook does not wait"
    );
}

// accept: 67
#[tokio::test]
async fn a_panicking_predicate_locks_only_its_tool() {
    let playbook = Playbook::new()
        .with_locked_tool(
            echo("broken"),
            Unlock::when("never", |_: &ConversationView<'_>| panic!("broken")),
        )
        .with_tool(echo("fine"));
    let (outcome, _) = run_playbook(
        playbook,
        [call([("broken", json!({})), ("fine", json!({}))]), reply("ok")],
    )
    .await;
    let results = tool_results(&outcome.history);
    assert!(
        results[0].contains("the strategy that guards it failed"),
        "{}",
        results[0]
    );
    assert_eq!(results[1], "fine");
}

#[derive(Clone, Debug, PartialEq)]
enum OrderState {
    Draft,
    Confirmed,
    Shipped,
}

fn order_machine() -> StateMachine<OrderState> {
    StateMachine::builder()
        .initial(OrderState::Draft)
        .in_state(OrderState::Draft)
        .tool(echo("add_item"))
        .tool(fallible("confirm"))
        .transitions_to(OrderState::Confirmed)
        .in_state(OrderState::Confirmed)
        .tool(echo("add_item"))
        .transitions_to(OrderState::Draft)
        .tool(echo("ship"))
        .transitions_to(OrderState::Shipped)
        .global_tool(echo("status"))
        .build()
        .unwrap()
}

async fn run_order(machine: StateMachine<OrderState>, steps: impl IntoIterator<Item = Step>) -> Vec<String> {
    let (builder, _) = TestModel::playing(steps.into_iter().chain([reply("ok")]));
    let outcome = builder.state_machine(machine).run("go").await.unwrap();
    tool_results(&outcome.history).into_iter().map(str::to_owned).collect()
}

// accept: 68, accept: 69
#[tokio::test]
async fn tools_belong_to_states_and_successful_calls_change_the_state() {
    let fail = call([("confirm", json!({"fail": true}))]);
    let steps = [
        invoke("ship"),
        invoke("status"),
        fail,
        invoke("ship"),
        invoke("confirm"),
        invoke("confirm"),
        invoke("ship"),
        call([("add_item", json!({})), ("status", json!({}))]),
    ];
    let results = run_order(order_machine(), steps).await;
    assert_eq!(
        results[0],
        "`ship` can be called in `Confirmed`, and the state is `Draft`; tools that can be called now: `add_item`, `confirm` (leads to \
         `Confirmed`)"
    );
    assert_eq!(results[1], "status");
    assert_eq!(results[3], results[0], "a failed call does not change the state");
    assert!(results[5].contains("the state is `Confirmed`"), "{}", results[5]);
    assert_eq!(results[6], "ship");
    assert!(
        results[7].contains("the state is `Shipped`; the conversation has no tool of this state"),
        "{}",
        results[7]
    );
    assert_eq!(results[8], "status");
}

// accept: 69
#[tokio::test]
async fn a_tool_in_two_states_has_one_transition_for_each_state() {
    let results = run_order(
        order_machine(),
        [
            invoke("add_item"),
            invoke("confirm"),
            invoke("add_item"),
            invoke("ship"),
        ],
    )
    .await;
    assert!(results[3].contains("the state is `Draft`"), "{}", results[3]);
}

// accept: 68
#[tokio::test]
async fn a_state_machine_starts_in_its_initial_state_and_requires_one() {
    let results = run_order(
        order_machine().with_initial_state(OrderState::Confirmed),
        [invoke("ship")],
    )
    .await;
    assert_eq!(results[0], "ship");
    let builder = StateMachine::builder().in_state("draft").tool(echo("x"));
    let error = builder.build().err().unwrap();
    assert_eq!(error.message, "the state machine has no initial state");
    let builder = StateMachine::builder().initial("draft").tool(echo("x"));
    assert!(builder.build().err().unwrap().message.contains("before `in_state`"));
    let builder = StateMachine::<&str>::builder().initial("draft").transitions_to("sent");
    assert!(builder.build().err().unwrap().message.contains("before `tool`"));
}

// accept: 69
#[tokio::test]
async fn the_state_persists_across_turns() {
    let (builder, _) = TestModel::playing([invoke("confirm"), reply("ok"), invoke("ship"), reply("ok")]);
    let mut conversation = builder.state_machine(order_machine()).build().unwrap();
    conversation.run("confirm").await.unwrap();
    let outcome = conversation.run("ship").await.unwrap();
    assert_eq!(*tool_results(&outcome.history).last().unwrap(), "ship");
}
