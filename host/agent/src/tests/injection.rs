//! Injection strategies in the loop.

use super::*;
use crate::injection::{Injection, InjectionContext, InjectionStrategy, StrategyChain};
use toolwit_core::ToolId;

/// Returns a strategy that returns `injection()` after each call of the tool `name`, and no injection after other calls.
fn inject_after(
    name: &'static str,
    injection: impl Fn() -> Injection + Send + Sync + 'static,
) -> impl Fn(&InjectionContext<'_>) -> Injection + Send + Sync + 'static {
    move |context| {
        if context.call().name.as_str() == name {
            injection()
        } else {
            Injection::none()
        }
    }
}

// accept: 3, accept: 21, accept: 23
#[tokio::test]
async fn calls_of_a_replaced_tool_are_refused_and_the_next_turn_does_not_declare_the_tool() {
    let (builder, model) = TestModel::playing([
        call([("open", json!({}))]),
        call([("open", json!({})), ("inside", json!({}))]),
        reply("ok"),
        reply("ok"),
    ]);
    let replace = inject_after("open", || {
        Injection::replace(ToolId::native("open"), vec![echo("inside")])
    });
    let mut conversation = builder
        .tools([echo("open"), echo("look")])
        .strategy(replace)
        .build()
        .unwrap();
    let outcome = conversation.run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(
        results[1].contains("tool-unavailable") && results[1].contains("has been removed"),
        "{}",
        results[1]
    );
    assert_eq!(results[2], "inside");
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
async fn a_tool_that_one_injection_removes_and_adds_stays_declared_and_callable() {
    let replace_by_itself = inject_after("look", || {
        Injection::replace(ToolId::native("look"), vec![echo("look")])
    });
    let (builder, model) = TestModel::playing([call([("look", json!({}))]), call([("look", json!({}))]), reply("ok")]);
    let outcome = builder
        .tools([echo("look")])
        .strategy(replace_by_itself)
        .run("go")
        .await
        .unwrap();
    assert_eq!(tool_results(&outcome.history), ["look", "look"]);
    assert_eq!(model.request(2).names, ["look"]);
}

// accept: 20, accept: 25
#[tokio::test]
async fn strategies_are_evaluated_after_each_call_in_call_order() {
    let evaluations = Arc::new(Mutex::new(Vec::new()));
    let recorded_evaluations = evaluations.clone();
    let record = move |context: &InjectionContext<'_>| {
        let call = context.call();
        let value = call.value().map(|value| value.into_owned()).unwrap_or_default();
        let evaluation = json!([
            call.name,
            call.arguments["n"],
            value,
            context.iteration(),
            context.history().len(),
            context.tools().len()
        ]);
        recorded_evaluations.lock().unwrap().push(evaluation);
        Injection::none()
    };
    let show = tool("show", |arguments, _| Ok(ToolResult::text(arguments["n"].to_string())));
    let fail = tool("fail", |_, _| Ok(ToolResult::error("no")));
    let (builder, _) = TestModel::playing([
        call([
            ("show", json!({"n": 1})),
            ("nowhere", json!({})),
            ("fail", json!({"n": 2})),
        ]),
        call([("show", json!({"n": 3}))]),
        reply("ok"),
    ]);
    builder.tools([show, fail]).strategy(record).run("go").await.unwrap();
    assert_eq!(
        *evaluations.lock().unwrap(),
        [
            json!(["show", 1, 1, 1, 3, 2]),
            json!(["fail", 2, null, 1, 5, 2]),
            json!(["show", 3, 3, 2, 7, 2]),
        ]
    );
}

// accept: 25
#[tokio::test]
async fn a_strategy_can_derive_the_tools_from_the_history() {
    let execute_after_approval = |context: &InjectionContext<'_>| {
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
    let mut conversation = builder
        .tools([echo("plan"), approve])
        .strategy(execute_after_approval)
        .build()
        .unwrap();
    let outcome = conversation.run("go").await.unwrap();
    assert_eq!(model.request(1).names, ["plan", "approve"]);
    assert_eq!(
        (outcome.injected[0].as_str(), outcome.removed[0].as_str()),
        ("execute", "plan")
    );
}

// accept: 24
#[tokio::test]
async fn a_conversation_without_strategies_injects_no_tools() {
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
async fn a_panicking_strategy_does_not_end_the_run_and_is_reported() {
    let (builder, model) = TestModel::playing([call([("look", json!({}))]), reply("ok")]);
    let panicking = |_: &InjectionContext<'_>| -> Injection { panic!("broken strategy") };
    let outcome = builder
        .tools([echo("look")])
        .strategy(panicking)
        .run("go")
        .await
        .unwrap();
    assert_eq!(outcome.text(), "ok");
    assert_eq!(model.events_named("strategy_failed")[0]["trigger"], "look");
}

// accept: 114
#[tokio::test]
async fn injected_tools_never_take_an_existing_or_reserved_name() {
    let plugin_tool = |id: &str| {
        let definition = toolwit_core::ToolDefinition::new(
            ToolId::plugin("evil", None, id),
            id,
            "A plugin tool.",
            json!({"type": "object"}),
        );
        Arc::new(NativeTool::from_definition(definition, |_, _| async { Ok(ToolResult::text("evil")) }).unwrap())
            as Arc<dyn Tool>
    };
    let inject = inject_after("look", move || {
        Injection::add(vec![
            plugin_tool("look"),
            plugin_tool("read_result"),
            plugin_tool("search_tools"),
        ])
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

/// Returns a plugin's tool with the preferred name `look`. The test adds it before the native tool `look`, which still gets the
/// name.
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
    let teach = |context: &InjectionContext<'_>| {
        let earlier_calls = context
            .calls()
            .succeeded()
            .filter(|call| call.name.as_str() == "learn")
            .count();
        match context.call().name.as_str() {
            "learn" if earlier_calls == 0 => Injection::add(vec![echo("first_aid")]),
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
    let outcome = builder.tools([echo("learn")]).strategy(teach).run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!((results[1], results[3]), ("first_aid", "surgery"));
    assert!(results[4].contains("has been removed"), "{}", results[4]);
}

/// A strategy with one initial tool. The name of the tool is also the guidance of the strategy.
struct GuidedStrategy(&'static str);

impl InjectionStrategy for GuidedStrategy {
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
async fn a_strategy_chain_adds_its_initial_tools_and_its_first_guidance() {
    let chain = || {
        StrategyChain::new()
            .then(GuidedStrategy("first"))
            .then(GuidedStrategy("second"))
    };
    let (builder, model) = TestModel::playing([reply("ok")]);
    builder.system("Be kind.").strategies(chain()).run("go").await.unwrap();
    assert_eq!(model.request(0).names, ["first", "second"]);
    assert_eq!(
        model.request(0).messages[0].content(),
        "Be kind.\n\nfirst",
        "the chain has the guidance of its first strategy"
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
        "the initial tools of replaced strategies stay"
    );
}

// accept: 63, accept: 145
#[tokio::test]
async fn a_reference_adds_text_and_tools_or_is_added_as_a_facade() {
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
    assert!(model.request(1).serialised_tools[2].contains("Search before you ask."));
}
