//! Agents and conversations with playbooks, state machines, chaining, references and introspection tools.

use super::*;
use crate::injection::{Chaining, Playbook, Reference, StateMachine, Unlock};
use toolwit_core::{Artifact, EntityMethods, NoArguments};

/// Returns an agent with its own model, which plays the steps.
fn agent(steps: impl IntoIterator<Item = Step>) -> (AgenticTool, TestModel) {
    let (_, model) = TestModel::playing(steps);
    (AgenticTool::new("agent", "Works.").with_model(model.clone()), model)
}

/// Calls the agent, and returns the result of the call.
async fn run(agent: &AgenticTool) -> ToolResult {
    let arguments = json!({"task": "go"}).as_object().unwrap().clone();
    agent.call(arguments, &ToolContext::new()).await.unwrap()
}

/// Returns the tool results that the last request to the model contains.
fn last_tool_results(model: &TestModel) -> Vec<String> {
    let messages = model.request(model.request_count() - 1).messages;
    tool_results(&messages).into_iter().map(str::to_owned).collect()
}

// accept: 66, accept: 67, accept: 25
#[tokio::test]
async fn a_playbook_unlocks_the_tools_of_an_agent_and_guides_the_model() {
    let page = tool("page", |_, _| {
        Ok(ToolResult::text("page").with_artifact(Artifact::new("Page", json!({}))))
    });
    let note = tool("note", |_, context| {
        context
            .blackboard()?
            .put(Artifact::new("Note", json!({})))
            .map_err(ToolError::Model)?;
        Ok(ToolResult::text("note"))
    });
    let playbook = Playbook::new()
        .with_tool(echo("search"))
        .with_tool(page)
        .with_tool(note)
        .with_locked_tool(echo("after_one"), Unlock::by("search"))
        .with_locked_tool(echo("after_all"), Unlock::by_all(["search", "page"]))
        .with_locked_tool(echo("after_any"), Unlock::by_any(["note", "page"]))
        .with_locked_tool(echo("by_artifact"), Unlock::by_artifact("Page"))
        .with_locked_tool(echo("by_blackboard"), Unlock::by_blackboard("Note"))
        .with_locked_tool(
            echo("late"),
            Unlock::when("wait for the third round", |view| view.iteration() >= 3),
        );
    let locked = [
        "after_one",
        "after_all",
        "after_any",
        "by_artifact",
        "by_blackboard",
        "late",
    ];
    let call_locked = || raw_calls(locked.map(|name| (name.to_owned(), "{}".to_owned())).to_vec());
    let unlock = call([("search", json!({})), ("page", json!({})), ("note", json!({}))]);
    let (agent, model) = agent([call_locked(), unlock, call_locked(), reply("done")]);
    let result = run(&agent.with_playbook(playbook)).await;
    assert_eq!(result.for_llm, "done");
    let results = last_tool_results(&model);
    for (name, result) in locked.iter().zip(&results) {
        assert!(result.contains(&format!("`{name}` is not available yet")), "{result}");
    }
    assert!(
        results[1].contains("`search`") && results[1].contains("`page`"),
        "{}",
        results[1]
    );
    assert_eq!(results[9..], locked, "all tools are unlocked");
}

#[derive(Clone, Debug, PartialEq)]
enum OrderState {
    Draft,
    Confirmed,
    Shipped,
}

fn order_machine() -> StateMachine<OrderState> {
    let lose = tool("lose", |_, _| Ok(ToolResult::error("lost")));
    StateMachine::builder()
        .initial(OrderState::Draft)
        .in_state(OrderState::Draft)
        .tool(echo("confirm"))
        .transitions_to(OrderState::Confirmed)
        .tool(lose)
        .transitions_to(OrderState::Shipped)
        .in_state(OrderState::Confirmed)
        .tool(echo("ship"))
        .transitions_to(OrderState::Shipped)
        .global_tool(echo("status"))
        .build()
        .unwrap()
}

// accept: 68, accept: 69, accept: 25
#[tokio::test]
async fn a_state_machine_moves_an_agent_from_state_to_state() {
    let step = |name: &'static str| call([(name, json!({}))]);
    let (agent, model) = agent([
        step("ship"),
        step("lose"),
        step("status"),
        step("confirm"),
        step("ship"),
        reply("done"),
    ]);
    run(&agent.with_state_machine(order_machine())).await;
    let results = last_tool_results(&model);
    assert!(results[0].contains("`Draft`"), "{}", results[0]);
    assert_eq!(
        results[1..],
        ["lost", "status", "confirm", "ship"],
        "a failed call does not change the state"
    );
}

// accept: 68, accept: 70
#[tokio::test]
async fn a_copy_of_an_agent_can_start_in_another_state() {
    let step = || call([("ship", json!({}))]);
    let (agent, model) = agent([step(), reply("done"), step(), reply("done")]);
    let original = agent.with_state_machine(order_machine());
    let confirmed_copy = original
        .clone()
        .with_state_machine(order_machine().with_initial_state(OrderState::Confirmed));
    run(&confirmed_copy).await;
    assert_eq!(last_tool_results(&model), ["ship"]);
    run(&original).await;
    assert!(
        last_tool_results(&model)[0].contains("`Draft`"),
        "the original is unchanged"
    );
}

// accept: 43, accept: 47
#[tokio::test]
async fn chained_tools_of_an_agent_are_not_locked_by_a_playbook() {
    let users = EntityMethods::<u32>::new("user")
        .method("mail", "Returns the address.", |id, _: NoArguments, _| async move {
            Ok::<_, String>(format!("{id}@example.com"))
        })
        .unwrap();
    let user = users.entity("7", Arc::new(7)).unwrap();
    let user: Arc<dyn toolwit_core::ToolProvider> = Arc::new(user);
    let get = tool("get_user", move |_, _| {
        Ok(ToolResult::text("user 7").with_provider(user.clone()))
    });
    let step = |name: &'static str| call([(name, json!({}))]);
    let (agent, model) = agent([step("user_mail"), step("get_user"), step("user_mail"), reply("done")]);
    let playbook = Playbook::new()
        .with_tool(get)
        .with_locked_tool(echo("never"), Unlock::by(toolwit_core::ToolSelector::later("nothing")));
    run(&agent
        .with_playbook(playbook)
        .with_chaining(Chaining::new().with_type(&users)))
    .await;
    let results = last_tool_results(&model);
    assert!(results[0].contains("not available yet"), "{}", results[0]);
    assert_eq!(results[2], "7@example.com");
}

// accept: 63
#[tokio::test]
async fn an_agent_receives_references() {
    let memory = Reference::new("memory", "Facts from earlier turns.", "Look here first.").with_tools([echo("recall")]);
    let (agent, model) = agent([reply("ok")]);
    run(&agent.with_reference(&memory)).await;
    assert!(model.request(0).messages[0].content().ends_with("Look here first."));
    assert_eq!(model.request(0).names, ["recall"]);
}

// accept: 144, accept: 62
#[tokio::test]
async fn the_introspection_tools_are_two_facades() {
    let steps = [
        call([("process", json!({})), ("blackboard", json!({}))]),
        call([("process_status", json!({})), ("blackboard_list", json!({}))]),
        reply("ok"),
    ];
    let (builder, model) = TestModel::playing(steps);
    let tools = builder
        .tool(ProcessTools::facade().unwrap())
        .tool(BlackboardTools::new().facade().unwrap());
    let outcome = tools.build().unwrap().run("go").await.unwrap();
    assert_eq!(model.request(0).names, ["process", "blackboard"]);
    let results = tool_results(&outcome.history);
    assert!(results[2].contains("\"running\""), "{}", results[2]);
    assert_eq!(results[3], "The blackboard is empty.");
}

// accept: 85, accept: 68
#[tokio::test]
async fn a_background_call_changes_the_state_with_its_late_result() {
    let (finish, finished) = tokio::sync::oneshot::channel::<()>();
    let finished = Mutex::new(Some(finished));
    let confirm = tool("confirm", move |_, context| {
        let finished = finished.lock().unwrap().take().unwrap();
        context.background_task()?.spawn(async move {
            finished.await.ok();
            Ok(ToolResult::text("confirmed"))
        });
        Ok(ToolResult::background("started"))
    });
    let machine = StateMachine::builder()
        .initial(OrderState::Draft)
        .in_state(OrderState::Draft)
        .tool(confirm)
        .transitions_to(OrderState::Confirmed)
        .in_state(OrderState::Confirmed)
        .tool(echo("ship"))
        .build()
        .unwrap();
    let ship = || call([("ship", json!({}))]);
    let (builder, _) = TestModel::playing([
        call([("confirm", json!({}))]),
        ship(),
        reply("Wait."),
        ship(),
        reply("Shipped."),
    ]);
    let mut conversation = builder.state_machine(machine).build().unwrap();
    let first = conversation.run("go").await.unwrap();
    assert!(tool_results(&first.history)[1].contains("`Draft`"));
    finish.send(()).unwrap();
    let woken = conversation.wake().await.unwrap().unwrap();
    assert_eq!(tool_results(&woken.history).last(), Some(&"ship"));
}
