//! Conversations that are resumed or branched from recorded events.

use super::*;
use crate::injection::{Facade, Injection, InjectionContext, Playbook, StateMachine, Unlock};
use toolwit_core::{NativeEntity, NoArguments};

/// Returns the tool `find`, whose result has an entity of the kind `customer`.
fn find_tool() -> Arc<dyn Tool> {
    tool("find", |_, _| {
        let entity = NativeEntity::new("customer", Arc::new(())).with_id("c-1");
        let entity = entity.method("spend", "Gets the spend.", |_, _: NoArguments, _| async {
            Ok::<_, String>(150)
        });
        Ok(ToolResult::text("found").with_provider(Arc::new(entity.unwrap())))
    })
}

/// Returns the facade `db`, whose tools depend on its arguments. One of them is the facade `admin`.
fn database_facade() -> Facade {
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

fn order_states() -> StateMachine<&'static str> {
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

/// Returns the builder of a conversation with the tools and strategies of these tests, and the model of the conversation.
fn configured(steps: impl IntoIterator<Item = Step>) -> (ConversationBuilder, TestModel) {
    let (builder, model) = TestModel::playing(steps);
    let add_extra_tool = |context: &InjectionContext<'_>| match context.call().name.as_str() {
        "query" => Injection::add(vec![echo("extra")]),
        _ => Injection::none(),
    };
    let write_note = tool("write_note", |_, _| {
        Ok(ToolResult::text("a note").with_artifact(toolwit_core::Artifact::new("Note", json!(1))))
    });
    let builder = builder
        .tools([find_tool(), write_note])
        .tool(database_facade())
        .playbook(playbook())
        .state_machine(order_states())
        .strategy(add_extra_tool);
    (builder, model)
}

fn playbook() -> Playbook {
    Playbook::new().with_locked_tool(echo("publish"), Unlock::by_artifact("Note"))
}

fn single_call(name: &str, arguments: Value) -> Step {
    call([(name, arguments)])
}

/// Returns the steps of two turns. The calls open facades, discover an entity, unlock a tool and change the state.
fn two_turn_steps() -> Vec<Step> {
    vec![
        single_call("db", json!({"connection": "a"})),
        single_call("find", json!({})),
        reply("one"),
        call([("query", json!({})), ("confirm", json!({})), ("write_note", json!({}))]),
        single_call("db", json!({"connection": "b"})),
        single_call("admin", json!({})),
        reply("two"),
    ]
}

/// Runs the turns of [`two_turn_steps`]. Returns the model and the history.
async fn run_two_turns() -> (TestModel, Vec<Message>) {
    let (builder, model) = configured(two_turn_steps());
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
    let (model, history) = run_two_turns().await;
    let steps = [
        call([
            ("query", json!({})),
            ("ship", json!({})),
            ("publish", json!({})),
            ("drop_table", json!({})),
            ("extra", json!({})),
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
    assert_eq!(resumed.request(0).serialised_tools, last.serialised_tools);
    assert_eq!(
        resumed.request(3).serialised_tools,
        last.serialised_tools,
        "an entity that is returned again adds no tools"
    );
    let results = tool_results(&outcome.history);
    let results = &results[results.len() - 8..];
    assert_eq!(results[..5], ["rows of b", "ship", "publish", "drop_table", "extra"]);
    assert!(
        results[5].contains("entity-gone") && results[5].contains("call `find` again"),
        "{}",
        results[5]
    );
    assert_eq!(
        results[7], "150",
        "the tools of an entity work again after the entity is returned again"
    );
    assert_eq!(resumed.events_named("turn_started")[0]["turn"], 3);
}

// accept: 126
#[tokio::test]
async fn a_branch_at_the_end_of_a_run_declares_the_tools_of_that_run() {
    let (model, history) = run_two_turns().await;
    let events = model.events();
    let ends = events
        .iter()
        .enumerate()
        .filter(|(_, event)| matches!(event, Event::Finished { .. }));
    let mut branch_count = 0;
    for (end, _) in ends {
        let (builder, branch) = configured([reply("ok")]);
        let earlier_events = events[..=end].to_vec();
        let expected: Vec<_> = visible_tools(&earlier_events).iter().map(ToString::to_string).collect();
        let mut conversation = builder.history(history.clone()).resume(earlier_events).build().unwrap();
        conversation.run("go on").await.unwrap();
        assert_eq!(branch.request(0).names, expected);
        branch_count += 1;
    }
    assert_eq!(branch_count, 2);
}

// accept: 126
#[tokio::test]
async fn the_same_responses_produce_the_same_events_except_times_and_ids() {
    let without_times_and_ids = |model: &TestModel| -> Vec<Value> {
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
    let (first, _) = run_two_turns().await;
    let (second, _) = run_two_turns().await;
    assert_eq!(without_times_and_ids(&first), without_times_and_ids(&second));
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
    let results = tool_results(&outcome.history);
    assert!(results[1].contains("the state is `confirmed`"), "{}", results[1]);
    assert_eq!(results[2], "ship");
}

// accept: 40
#[tokio::test]
async fn evicted_tools_stay_undeclared_after_a_resume() {
    let limits = LoopLimits {
        tools_max: 7,
        ..LoopLimits::default()
    };
    let (builder, model) = configured(two_turn_steps());
    let mut conversation = builder.limits(limits.clone()).build().unwrap();
    conversation.run("one").await.unwrap();
    let history = conversation.run("two").await.unwrap().history;
    assert!(!model.events_named("tools_evicted").is_empty());
    let (builder, resumed) = configured([reply("ok")]);
    let builder = builder.limits(limits).history(history).resume(model.events());
    builder.run("go on").await.unwrap();
    assert_eq!(
        resumed.request(0).serialised_tools,
        model.request(model.request_count() - 1).serialised_tools
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

/// Returns the tool `endless`, whose background task never ends.
fn endless_tool() -> Arc<dyn Tool> {
    tool("endless", |_, context| {
        context.background_task()?.spawn(std::future::pending());
        Ok(ToolResult::background("started"))
    })
}

// accept: 85, accept: 126
#[tokio::test]
async fn a_resume_answers_pending_background_calls_with_an_error() {
    let quick_tool = || {
        tool("quick", |_, context| {
            context.background_task()?.deliver(ToolResult::text("42"));
            Ok(ToolResult::background("started"))
        })
    };
    let (builder, model) = TestModel::playing([
        call([("quick", json!({})), ("endless", json!({"n": 1}))]),
        reply("Wait."),
    ]);
    let outcome = builder.tools([quick_tool(), endless_tool()]).run("go").await.unwrap();
    assert_eq!(
        model.events_named("late_result").len(),
        1,
        "the result of `quick` arrived"
    );
    let (builder, resumed) = TestModel::playing([reply("It is lost.")]);
    let builder = builder.history(outcome.history).resume(round_trip(&model.events()));
    let mut conversation = builder.tools([quick_tool(), endless_tool()]).build().unwrap();
    assert_eq!(conversation.background_calls(), 1);
    let outcome = conversation.wake().await.unwrap().unwrap();
    assert_eq!(outcome.text(), "It is lost.");
    let late = resumed.events_named("late_result");
    assert_eq!(
        (late.len(), &late[0]["name"], &late[0]["is_error"]),
        (1, &json!("endless"), &json!(true))
    );
    let last = tool_results(&outcome.history).pop().unwrap();
    assert!(last.contains("ended with the process"), "{last}");
    assert_valid(&outcome.history);
    assert!(conversation.wake().await.is_none());
    let all_events: Vec<_> = model.events().into_iter().chain(resumed.events()).collect();
    let (builder, _) = TestModel::playing([]);
    let second = builder.history(outcome.history).resume(all_events).build().unwrap();
    assert_eq!(second.background_calls(), 0, "the pending call has its answer");
}

// accept: 68
#[tokio::test]
async fn a_state_machine_requires_events_or_a_chosen_state_if_the_history_has_calls() {
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
    let builder = builder
        .state_machine(order_states().with_initial_state("confirmed"))
        .playbook(playbook().restarted());
    let outcome = builder.history(history).run("ship").await.unwrap();
    assert_eq!(
        tool_results(&outcome.history).pop(),
        Some("ship"),
        "the application chose the state"
    );
    let (builder, _) = configured([reply("ok")]);
    let messages = vec![Message::user("Hello."), Message::assistant("Hello.", Vec::new())];
    assert!(
        builder.history(messages).build().is_ok(),
        "without calls, the state is still the initial one"
    );
}
