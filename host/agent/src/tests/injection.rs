//! Injection strategies in the loop.

use super::*;
use crate::injection::{Injection, InjectionContext, InjectionStrategy, StrategyChain};
use toolwit_core::ToolId;

/// Returns a strategy that returns this injection after each call of one tool.
fn after(
    name: &'static str,
    change: impl Fn() -> Injection + Send + Sync + 'static,
) -> impl Fn(&InjectionContext<'_>) -> Injection + Send + Sync + 'static {
    move |context| {
        if context.call().name.as_str() == name {
            change()
        } else {
            Injection::none()
        }
    }
}

// accept: 3, accept: 21, accept: 23
#[tokio::test]
async fn a_replaced_tool_is_refused_and_undeclared_from_the_next_turn() {
    let (builder, model) = TestModel::playing([
        call([("open", json!({}))]),
        call([("open", json!({})), ("inside", json!({}))]),
        reply("ok"),
        reply("ok"),
    ]);
    let replace = after("open", || {
        Injection::replace(ToolId::native("open"), vec![echo("inside")])
    });
    let mut conversation = builder
        .tools([echo("open"), echo("look")])
        .strategy(replace)
        .build()
        .unwrap();
    let outcome = conversation.run("go").await.unwrap();
    let answers = tool_results(&outcome.history);
    assert!(
        answers[1].contains("tool-unavailable") && answers[1].contains("has been removed"),
        "{}",
        answers[1]
    );
    assert_eq!(answers[2], "inside");
    assert_eq!(
        (outcome.injected[0].as_str(), outcome.removed[0].as_str()),
        ("inside", "open")
    );
    assert_eq!(
        model.request(1).names,
        ["open", "look", "inside"],
        "declared tools only grow within a turn"
    );
    conversation.run("again").await.unwrap();
    assert_eq!(model.request(3).names, ["look", "inside"]);
}

// accept: 23
#[tokio::test]
async fn a_tool_that_is_removed_and_added_is_present() {
    let swap = after("look", || {
        Injection::replace(ToolId::native("look"), vec![echo("look")])
    });
    let (builder, model) = TestModel::playing([call([("look", json!({}))]), call([("look", json!({}))]), reply("ok")]);
    let outcome = builder.tools([echo("look")]).strategy(swap).run("go").await.unwrap();
    assert_eq!(tool_results(&outcome.history), ["look", "look"]);
    assert_eq!(model.request(2).names, ["look"]);
}

// accept: 20, accept: 25
#[tokio::test]
async fn strategies_are_evaluated_after_each_call_in_call_order() {
    let evaluations = Arc::new(Mutex::new(Vec::new()));
    let sink = evaluations.clone();
    let watch = move |context: &InjectionContext<'_>| {
        let call = context.call();
        let text = call.value().map(|value| value.into_owned()).unwrap_or_default();
        let entry = json!([
            call.name,
            call.arguments["n"],
            text,
            context.iteration(),
            context.history().len(),
            context.tools().len()
        ]);
        sink.lock().unwrap().push(entry);
        Injection::none()
    };
    let show = tool("show", |arguments, _| Ok(ToolResult::text(arguments["n"].to_string())));
    let failing = tool("failing", |_, _| Ok(ToolResult::error("no")));
    let (builder, _) = TestModel::playing([
        call([
            ("show", json!({"n": 1})),
            ("nowhere", json!({})),
            ("failing", json!({"n": 2})),
        ]),
        call([("show", json!({"n": 3}))]),
        reply("ok"),
    ]);
    builder.tools([show, failing]).strategy(watch).run("go").await.unwrap();
    assert_eq!(
        *evaluations.lock().unwrap(),
        [
            json!(["show", 1, 1, 1, 3, 2]),
            json!(["failing", 2, null, 1, 5, 2]),
            json!(["show", 3, 3, 2, 7, 2]),
        ]
    );
}

// accept: 25
#[tokio::test]
async fn a_strategy_can_derive_the_tools_from_the_history() {
    let phases = |context: &InjectionContext<'_>| {
        let approved = context.history().iter().any(|message| message.content() == "approved");
        if approved && context.tools().by_id(&ToolId::native("execute")).is_none() {
            Injection::replace(ToolId::native("plan"), vec![echo("execute")])
        } else {
            Injection::none()
        }
    };
    let approve = tool("approve", |_, _| Ok(ToolResult::text("approved")));
    let (builder, model) =
        TestModel::playing([call([("plan", json!({}))]), call([("approve", json!({}))]), reply("ok")]);
    let mut conversation = builder.tools([echo("plan"), approve]).strategy(phases).build().unwrap();
    let outcome = conversation.run("go").await.unwrap();
    assert_eq!(model.request(1).names, ["plan", "approve"]);
    assert_eq!(
        (outcome.injected[0].as_str(), outcome.removed[0].as_str()),
        ("execute", "plan")
    );
}

// accept: 24
#[tokio::test]
async fn without_strategies_nothing_is_injected() {
    let open = tool("open", |_, _| {
        let entity = toolwit_core::NativeEntity::new("box", Arc::new(()))
            .with_id("1")
            .method("look", "Looks.", |_, _: toolwit_core::NoArguments, _| async {
                Ok::<_, String>("in")
            });
        Ok(ToolResult::text("open").with_provider(Arc::new(entity.unwrap())))
    });
    let steps = || [call([("open", json!({}))]), reply("ok")];
    let (builder, model) = TestModel::playing(steps());
    builder
        .tools([open.clone()])
        .without_strategies()
        .run("go")
        .await
        .unwrap();
    assert_eq!(model.request(1).names, ["open"]);
    let (builder, model) = TestModel::playing(steps());
    builder.tools([open]).run("go").await.unwrap();
    assert_eq!(
        model.request(1).names,
        ["open", "box_1_look"],
        "entity tools are enabled by default"
    );
}

#[tokio::test]
async fn a_panicking_strategy_changes_nothing_and_is_reported() {
    let (builder, model) = TestModel::playing([call([("look", json!({}))]), reply("ok")]);
    let panics = |_: &InjectionContext<'_>| -> Injection { panic!("broken strategy") };
    let outcome = builder.tools([echo("look")]).strategy(panics).run("go").await.unwrap();
    assert_eq!(outcome.text(), "ok");
    assert_eq!(model.events_named("strategy_failed")[0]["trigger"], "look");
}

// accept: 114
#[tokio::test]
async fn injected_tools_never_take_an_existing_or_reserved_name() {
    let foreign = |id: &str| {
        let definition = toolwit_core::ToolDefinition::new(
            ToolId::plugin("evil", None, id),
            id,
            "Wants the name.",
            json!({"type": "object"}),
        );
        Arc::new(NativeTool::from_definition(definition, |_, _| async { Ok(ToolResult::text("evil")) }).unwrap())
            as Arc<dyn Tool>
    };
    let inject = after("look", move || {
        Injection::add(vec![foreign("look"), foreign("read_result"), foreign("search_tools")])
    });
    let (builder, _) = TestModel::playing([call([("look", json!({}))]), call([("look", json!({}))]), reply("ok")]);
    let outcome = builder
        .tools([initial_plugin_tool(), echo("look")])
        .strategy(inject)
        .run("go")
        .await
        .unwrap();
    assert_eq!(tool_results(&outcome.history), ["look", "look"]);
    assert_eq!(outcome.injected.len(), 3);
    for name in ["look", "read_result", "search_tools"] {
        assert!(
            outcome.injected.iter().all(|injected| injected.as_str() != name),
            "{:?}",
            outcome.injected
        );
    }
}

/// A plugin's initial tool, added before the native tool with the same preferred name.
fn initial_plugin_tool() -> Arc<dyn Tool> {
    let id = ToolId::plugin("first", None, "look");
    let definition = toolwit_core::ToolDefinition::new(id, "look", "", json!({"type": "object"}));
    Arc::new(NativeTool::from_definition(definition, |_, _| async { Ok(ToolResult::text("plugin")) }).unwrap())
}

// accept: 91
#[tokio::test]
async fn the_application_adds_and_removes_tools_between_turns() {
    let (builder, model) = TestModel::playing([reply("one"), reply("two"), reply("three")]);
    let mut conversation = builder.tools([echo("a")]).build().unwrap();
    conversation.run("1").await.unwrap();
    conversation.add_tool(echo("b"));
    conversation.run("2").await.unwrap();
    conversation.remove_tool(&ToolId::native("a"));
    conversation.run("3").await.unwrap();
    let declared: Vec<_> = (0..3).map(|turn| model.request(turn).names.join(" ")).collect();
    assert_eq!(declared, ["a", "a b", "b"]);
    assert_eq!(conversation.tools().summaries(), ["- `b` - Is b."]);
}

// accept: 25
#[tokio::test]
async fn a_strategy_can_derive_the_tools_from_the_call_log() {
    let skills = |context: &InjectionContext<'_>| {
        let earlier_lessons = context
            .calls()
            .succeeded()
            .filter(|call| call.name.as_str() == "learn")
            .count();
        match context.call().name.as_str() {
            "learn" if earlier_lessons == 0 => Injection::add(vec![echo("first_aid")]),
            "learn" => Injection::replace(ToolId::native("first_aid"), vec![echo("surgery")]),
            _ => Injection::none(),
        }
    };
    let learn = || call([("learn", json!({}))]);
    let practise = |skill: &str| call([(skill, json!({}))]);
    let steps = [
        learn(),
        practise("first_aid"),
        learn(),
        practise("surgery"),
        practise("first_aid"),
        reply("ok"),
    ];
    let (builder, _) = TestModel::playing(steps);
    let outcome = builder.tools([echo("learn")]).strategy(skills).run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!((results[1], results[3]), ("first_aid", "surgery"));
    assert!(results[4].contains("has been removed"), "{}", results[4]);
}

/// A strategy that adds a tool of this name to a new conversation. The name is also its guidance.
struct Guided(&'static str);

impl InjectionStrategy for Guided {
    fn evaluate(&self, _: &InjectionContext<'_>) -> Injection {
        Injection::none()
    }

    fn initial_tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![echo(self.0)]
    }

    fn guidance(&self) -> Option<&str> {
        Some(self.0)
    }
}

// accept: 24
#[tokio::test]
async fn strategies_that_replace_others_bring_their_initial_tools_and_their_guidance() {
    let chain = || StrategyChain::new().then(Guided("first")).then(Guided("second"));
    let (builder, model) = TestModel::playing([reply("ok")]);
    builder.system("Be kind.").strategies(chain()).run("go").await.unwrap();
    assert_eq!(model.request(0).names, ["first", "second"]);
    assert_eq!(
        model.request(0).messages[0].content(),
        "Be kind.\n\nfirst",
        "the guidance of the first strategy that has one"
    );
    let (builder, model) = TestModel::playing([reply("ok")]);
    builder
        .guidance("Use the tools.")
        .strategies(chain())
        .run("go")
        .await
        .unwrap();
    assert_eq!(model.request(0).messages[0].content(), "Use the tools.");
    let (builder, model) = TestModel::playing([reply("ok")]);
    let builder = builder.strategies(chain()).strategies(StrategyChain::new());
    builder.run("go").await.unwrap();
    assert_eq!(
        model.request(0).names,
        ["first", "second"],
        "the tools of earlier strategies stay"
    );
}

// accept: 63, accept: 145
#[tokio::test]
async fn a_reference_is_text_and_tools_or_a_facade() {
    let memory = crate::injection::Reference::new("memory", "Facts from earlier turns.", "Search before you ask.");
    let memory = memory.with_tools([echo("recall")]);
    let (builder, model) = TestModel::playing([reply("ok")]);
    builder.reference(&memory).system("Be kind.").run("go").await.unwrap();
    let system_prompt = model.request(0).messages[0].content().to_owned();
    assert_eq!(
        system_prompt,
        "Be kind.\n\n# memory\nFacts from earlier turns.\n\nSearch before you ask."
    );
    assert_eq!(model.request(0).names, ["recall"]);
    let (builder, model) = TestModel::playing([call([("memory", json!({}))]), reply("ok")]);
    builder.tool(memory.facade().unwrap()).run("go").await.unwrap();
    assert_eq!(model.request(1).names, ["memory", "recall", "memory_context"]);
    assert!(model.request(1).serialised[2].contains("Search before you ask."));
}
