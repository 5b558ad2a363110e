//! Resuming and branching from events.

use super::*;
use crate::injection::{Facade, Injection, InjectionContext, Playbook, StateMachine, Unlock};
use toolwit_core::{NativeEntity, NoArguments};

/// Returns a tool that returns a customer.
fn find() -> Arc<dyn Tool> {
    tool("find", |_, _| {
        let entity = NativeEntity::new("customer", Arc::new(())).with_id("c-1");
        let entity = entity.method("spend", "Gets the spend.", |_, _: NoArguments, _| async {
            Ok::<_, String>(150)
        });
        Ok(ToolResult::text("found").with_provider(Arc::new(entity.unwrap())))
    })
}

/// Returns a facade whose tools depend on its arguments, with an inner facade.
fn database() -> Facade {
    let admin = Facade::builder("admin", "Administers.")
        .tools([echo("drop_table")])
        .build()
        .unwrap();
    let admin: Arc<dyn Tool> = Arc::new(admin);
    let schema = json!({"type": "object", "properties": {"connection": {"type": "string"}}});
    let facade = Facade::builder("db", "Works with a database.").select_with(schema, move |arguments, _| {
        let connection = arguments["connection"].as_str().unwrap_or("none").to_owned();
        let query = tool("query", move |_, _| {
            Ok(ToolResult::text(format!("rows of {connection}")))
        });
        Ok(vec![query, admin.clone()])
    });
    facade.build().unwrap()
}

fn machine() -> StateMachine<&'static str> {
    StateMachine::builder()
        .initial("draft")
        .in_state("draft")
        .tool(echo("confirm"))
        .transitions_to("confirmed")
        .in_state("confirmed")
        .tool(echo("ship"))
        .build()
        .unwrap()
}

/// Returns a builder with the initial tools and strategies of the test conversation, and its model.
fn configured(steps: impl IntoIterator<Item = Step>) -> (ConversationBuilder, TestModel) {
    let (builder, model) = TestModel::playing(steps);
    let add_own = |context: &InjectionContext<'_>| match context.call().name.as_str() {
        "query" => Injection::add(vec![echo("own")]),
        _ => Injection::none(),
    };
    let give = tool("give", |_, _| {
        Ok(ToolResult::text("a note").with_artifact(toolwit_core::Artifact::new("Note", json!(1))))
    });
    let builder = builder
        .tools([find(), give])
        .tool(database())
        .playbook(playbook())
        .state_machine(machine())
        .strategy(add_own);
    (builder, model)
}

fn playbook() -> Playbook {
    Playbook::new().with_locked_tool(echo("publish"), Unlock::by_artifact("Note"))
}

fn single_call(name: &str, arguments: Value) -> Step {
    call([(name, arguments)])
}

/// Returns the steps of two turns that open facades, discover an entity, unlock a tool and change the state.
fn story() -> Vec<Step> {
    vec![
        single_call("db", json!({"connection": "a"})),
        single_call("find", json!({})),
        reply("one"),
        call([("query", json!({})), ("confirm", json!({})), ("give", json!({}))]),
        single_call("db", json!({"connection": "b"})),
        single_call("admin", json!({})),
        reply("two"),
    ]
}

async fn run_story() -> (TestModel, Vec<Message>) {
    let (builder, model) = configured(story());
    let mut conversation = builder.build().unwrap();
    conversation.run("one").await.unwrap();
    let outcome = conversation.run("two").await.unwrap();
    (model, outcome.history)
}

/// Serialises a value to JSON and back.
fn round_trip<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

// accept: 126, accept: 133
#[tokio::test]
async fn a_resumed_conversation_declares_the_same_tools_byte_for_byte() {
    let (model, history) = run_story().await;
    let steps = [
        call([
            ("query", json!({})),
            ("ship", json!({})),
            ("publish", json!({})),
            ("drop_table", json!({})),
            ("own", json!({})),
            ("customer_c1_spend", json!({})),
        ]),
        single_call("find", json!({})),
        single_call("customer_c1_spend", json!({})),
        reply("three"),
    ];
    let (builder, resumed) = configured(steps);
    let mut conversation = builder
        .history(round_trip(&history))
        .resume(round_trip(&model.events()))
        .build()
        .unwrap();
    let outcome = conversation.run("three").await.unwrap();
    assert_valid(&outcome.history);
    let last = model.request(model.request_count() - 1);
    assert_eq!(resumed.request(0).serialised, last.serialised);
    assert_eq!(
        resumed.request(3).serialised,
        last.serialised,
        "an entity that is found again does not add tools"
    );
    let answers = tool_results(&outcome.history);
    let answers = &answers[answers.len() - 8..];
    assert_eq!(answers[..5], ["rows of b", "ship", "publish", "drop_table", "own"]);
    assert!(
        answers[5].contains("entity-gone") && answers[5].contains("call `find` again"),
        "{}",
        answers[5]
    );
    assert_eq!(answers[7], "150", "an object that is returned again is bound again");
    assert_eq!(resumed.events_named("turn_started")[0]["turn"], 3);
}

// accept: 126
#[tokio::test]
async fn the_events_up_to_each_end_of_a_run_are_a_branch_with_its_tools() {
    let (model, history) = run_story().await;
    let events = model.events();
    let ends = events
        .iter()
        .enumerate()
        .filter(|(_, event)| matches!(event, Event::Finished { .. }));
    let mut branches = 0;
    for (end, _) in ends {
        let (builder, branch) = configured([reply("ok")]);
        let log = events[..=end].to_vec();
        let expected: Vec<_> = visible_tools(&log).iter().map(ToString::to_string).collect();
        let mut conversation = builder.history(history.clone()).resume(log).build().unwrap();
        conversation.run("go on").await.unwrap();
        assert_eq!(branch.request(0).names, expected);
        branches += 1;
    }
    assert_eq!(branches, 2);
}

// accept: 126
#[tokio::test]
async fn the_same_responses_produce_the_same_events() {
    let without_time = |model: &TestModel| -> Vec<Value> {
        let events = model
            .events()
            .into_iter()
            .map(|event| serde_json::to_value(event).unwrap());
        events
            .map(|mut event| {
                let fields = event.as_object_mut().unwrap();
                fields.remove("wall_ms");
                fields.remove("loop_id");
                event
            })
            .collect()
    };
    let (first, _) = run_story().await;
    let (second, _) = run_story().await;
    assert_eq!(without_time(&first), without_time(&second));
}

// accept: 68
#[tokio::test]
async fn a_resumed_state_machine_keeps_its_state() {
    let (builder, model) = configured([single_call("confirm", json!({})), reply("ok")]);
    let outcome = builder.run("confirm").await.unwrap();
    let (builder, _) = configured([
        single_call("confirm", json!({})),
        single_call("ship", json!({})),
        reply("ok"),
    ]);
    let builder = builder.history(outcome.history).resume(model.events());
    let outcome = builder.run("ship").await.unwrap();
    let answers = tool_results(&outcome.history);
    assert!(answers[1].contains("the state is `confirmed`"), "{}", answers[1]);
    assert_eq!(answers[2], "ship");
}

// accept: 40
#[tokio::test]
async fn evicted_tools_stay_undeclared_after_a_resume() {
    let limits = LoopLimits {
        tools_max: 7,
        ..LoopLimits::default()
    };
    let (builder, model) = configured(story());
    let mut conversation = builder.limits(limits.clone()).build().unwrap();
    conversation.run("one").await.unwrap();
    let history = conversation.run("two").await.unwrap().history;
    assert!(!model.events_named("tools_evicted").is_empty());
    let (builder, resumed) = configured([reply("ok")]);
    let builder = builder.limits(limits).history(history).resume(model.events());
    builder.run("go on").await.unwrap();
    assert_eq!(
        resumed.request(0).serialised,
        model.request(model.request_count() - 1).serialised
    );
}

#[test]
fn inconsistent_events_do_not_panic() {
    let name = toolwit_core::ToolName::parse("ghost").unwrap();
    let events = vec![
        Event::ToolsInjected {
            trigger: name.clone(),
            names: vec![name.clone(), name.clone()],
            definitions: Vec::new(),
            prompt_bytes: 0,
        },
        Event::ToolsRestored {
            names: vec![name.clone()],
        },
        Event::ToolsFolded {
            names: vec![name.clone()],
        },
        Event::ToolsRebound {
            trigger: name.clone(),
            names: vec![name],
        },
    ];
    let (builder, _) = configured([]);
    let conversation = builder.resume(events).build().unwrap();
    assert!(conversation.tools().iter().all(|tool| tool.name.as_str() != "ghost"));
}

/// Returns a tool whose background work never ends.
fn endless() -> Arc<dyn Tool> {
    tool("endless", |_, context| {
        context.background_task()?.spawn(std::future::pending());
        Ok(ToolResult::background("started"))
    })
}

// accept: 85, accept: 126
#[tokio::test]
async fn a_resume_answers_pending_background_calls_with_an_error() {
    let quick = || {
        tool("quick", |_, context| {
            context.background_task()?.deliver(ToolResult::text("42"));
            Ok(ToolResult::background("started"))
        })
    };
    let (builder, model) = TestModel::playing([
        call([("quick", json!({})), ("endless", json!({"n": 1}))]),
        reply("Wait."),
    ]);
    let outcome = builder.tools([quick(), endless()]).run("go").await.unwrap();
    assert_eq!(
        model.events_named("late_result").len(),
        1,
        "the result of `quick` arrived"
    );
    let (builder, resumed) = TestModel::playing([reply("It is lost.")]);
    let builder = builder.history(outcome.history).resume(round_trip(&model.events()));
    let mut conversation = builder.tools([quick(), endless()]).build().unwrap();
    assert_eq!(conversation.background_calls(), 1);
    let woken = conversation.wake().await.unwrap().unwrap();
    assert_eq!(woken.text(), "It is lost.");
    let late = resumed.events_named("late_result");
    assert_eq!(
        (late.len(), &late[0]["name"], &late[0]["is_error"]),
        (1, &json!("endless"), &json!(true))
    );
    let last = tool_results(&woken.history).pop().unwrap();
    assert!(last.contains("ended with the process"), "{last}");
    assert_valid(&woken.history);
    assert!(conversation.wake().await.is_none());
    let log: Vec<_> = model.events().into_iter().chain(resumed.events()).collect();
    let (builder, _) = TestModel::playing([]);
    let second = builder.history(woken.history).resume(log).build().unwrap();
    assert_eq!(second.background_calls(), 0, "the call is answered once");
}

// accept: 68
#[tokio::test]
async fn a_state_machine_is_not_continued_from_the_history_alone() {
    let (builder, model) = configured([single_call("confirm", json!({})), reply("ok")]);
    let history = builder.run("confirm").await.unwrap().history;
    let (builder, _) = configured([]);
    let error = builder.history(history.clone()).build().err().unwrap();
    assert_eq!(error.kind, toolwit_core::ErrorKind::Configuration);
    assert!(error.message.contains("state machine"), "{error}");
    assert!(error.suggestion.as_ref().unwrap().contains("`resume`"), "{error:?}");
    let (builder, _) = configured([]);
    assert!(builder.history(history.clone()).resume(model.events()).build().is_ok());
    let (builder, _) = configured([single_call("ship", json!({})), reply("ok")]);
    let chosen = builder
        .state_machine(machine().with_initial_state("confirmed"))
        .playbook(playbook().restarted());
    let outcome = chosen.history(history).run("ship").await.unwrap();
    assert_eq!(
        tool_results(&outcome.history).pop(),
        Some("ship"),
        "the application chose the state"
    );
    let (builder, _) = configured([reply("ok")]);
    let messages = vec![Message::user("Hello."), Message::assistant("Hello.", Vec::new())];
    assert!(
        builder.history(messages).build().is_ok(),
        "without calls, the initial state is correct"
    );
}
