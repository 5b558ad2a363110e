//! Agentic tools: tools that run their own conversation with a model.

use super::*;
use toolwit_core::limits::AGENT_DEPTH_MAX;
use toolwit_core::{Artifact, Blackboard, MemoryBlackboard, NoArguments, Parameter, ToolMethod, ToolMethods};
use toolwit_core::{Error, ErrorKind, Phase};

/// Returns an agentic tool, and its model, which plays these steps.
fn agent(name: &str, steps: impl IntoIterator<Item = Step>) -> (AgenticTool, TestModel) {
    let (_, model) = TestModel::playing(steps);
    (
        AgenticTool::new(name, "Works out sums.").with_model(model.clone()),
        model,
    )
}

async fn call_with(tool: &AgenticTool, arguments: Value, context: &ToolContext) -> Result<ToolResult, ToolError> {
    tool.call(arguments.as_object().unwrap().clone(), context).await
}

/// Returns a tool whose result has an artifact of this kind.
fn artifact_tool(name: &str, kind: &'static str) -> Arc<dyn Tool> {
    tool(name, move |_, _| {
        Ok(ToolResult::text(kind).with_artifact(Artifact::new(kind, json!({}))))
    })
}

fn artifact_kinds(result: &ToolResult) -> Vec<&str> {
    result.artifacts.iter().map(|artifact| artifact.kind.as_str()).collect()
}

// accept: 65, accept: 127
#[tokio::test]
async fn an_agentic_tool_runs_its_own_loop() {
    let (tool, model) = agent(
        "calculator",
        [call([("add", json!({})), ("multiply", json!({}))]), reply("11")],
    );
    let tool = tool.with_tools([echo("add"), echo("multiply")]);
    let result = call_with(&tool, json!({"task": "5 + 3 * 2"}), &ToolContext::new())
        .await
        .unwrap();
    assert_eq!(result.for_llm, "11");
    let request = model.request(0);
    assert_eq!(request.names, ["add", "multiply"], "all inner tools are declared");
    assert!(
        request.messages[0].content().contains("Works out sums."),
        "{}",
        request.messages[0].content()
    );
    assert_eq!(request.messages[1].content(), "5 + 3 * 2");
}

// accept: 70
#[tokio::test]
async fn options_are_set_on_copies() {
    let (base, model) = agent("base", [reply("a"), reply("b"), reply("c")]);
    let fixed = base.clone().with_system_prompt("Be brief.");
    let dynamic = base.clone().with_system_prompt_from(|context, input| {
        format!("For {}: {input}", context.text("tenant").unwrap_or("no tenant"))
    });
    let with_parameters = base
        .clone()
        .with_parameter(Parameter::string("topic", "What about"))
        .with_parameter(Parameter::integer("depth", "How deep").optional())
        .with_parameter(Parameter::number("share", "How much").optional());
    assert_eq!(with_parameters.definition().input_schema["required"], json!(["topic"]));
    assert_eq!(base.definition().input_schema["required"], json!(["task"]));
    let context = ToolContext::new().with("tenant", "acme");
    call_with(&fixed, json!({"task": "x"}), &context).await.unwrap();
    call_with(&dynamic, json!({"task": "x"}), &context).await.unwrap();
    call_with(&with_parameters, json!({"topic": "tea", "depth": 2}), &context)
        .await
        .unwrap();
    let content = |request: usize, message: usize| model.request(request).messages[message].content().to_owned();
    assert_eq!(
        (content(0, 0), content(1, 0)),
        ("Be brief.".to_owned(), "For acme: x".to_owned())
    );
    assert_eq!(content(2, 1), r#"{"topic":"tea","depth":2}"#);
    let error = call_with(&with_parameters, json!({"depth": 2.5, "topic": "tea"}), &context)
        .await
        .unwrap_err();
    assert_eq!(error.report().kind, ErrorKind::InvalidArguments);
}

struct Search;

impl ToolMethods for Search {
    fn tool_methods() -> Vec<ToolMethod<Self>> {
        vec![ToolMethod::new("search", "Searches.", |_, _: NoArguments, _| async {
            Ok::<_, String>("found")
        })]
    }
}

// accept: 70, accept: 6
#[tokio::test]
async fn tool_objects_are_inner_tools_and_iterations_have_a_limit() {
    let search = || call([("search", json!({}))]);
    let (tool, model) = agent("searcher", [search(), search()]);
    let tool = tool.with_tool_object(Search).with_iterations_max(2);
    let result = call_with(&tool, json!({"task": "x"}), &ToolContext::new())
        .await
        .unwrap();
    assert!(result.is_error());
    assert!(result.for_llm.contains("limit of 2 iterations"), "{}", result.for_llm);
    assert_eq!(model.request(1).messages.last().unwrap().content(), "found");
}

// accept: 71
#[tokio::test]
async fn an_agent_omits_the_artifacts_of_nested_agents_unless_it_captures_them() {
    for (captures_nested, expected) in [(false, vec!["Concert"]), (true, vec!["Performance", "Concert"])] {
        let (finder, _) = agent("finder", [call([("perform", json!({}))]), reply("found")]);
        let finder = finder.with_tool(artifact_tool("perform", "Performance"));
        let (assembler, _) = agent(
            "assembler",
            [
                call([("finder", json!({"task": "x"})), ("create", json!({}))]),
                reply("assembled"),
            ],
        );
        let assembler = assembler
            // A decorated agent is still a nested agent.
            .with_tool(toolwit_core::ToolExt::with_note(finder, "Finds performances."))
            .with_tool(artifact_tool("create", "Concert"))
            .with_nested_artifacts(captures_nested);
        let result = call_with(&assembler, json!({"task": "x"}), &ToolContext::new())
            .await
            .unwrap();
        assert_eq!(artifact_kinds(&result), expected);
        let (builder, _) = TestModel::playing([call([("finder", json!({"task": "x"}))]), reply("Done.")]);
        let (finder, _) = agent("finder", [call([("perform", json!({}))]), reply("found")]);
        let finder = finder.with_tool(artifact_tool("perform", "Performance"));
        let outcome = builder.tool(finder).build().unwrap().run("go").await.unwrap();
        assert_eq!(
            outcome.artifacts[0].kind, "Performance",
            "a conversation returns the artifacts of its agents"
        );
    }
}

// accept: 87, accept: 13
#[tokio::test]
async fn inner_tools_receive_the_context_and_the_blackboard() {
    let look = tool("look", |_, context| {
        context
            .blackboard()?
            .put(Artifact::new("Seen", json!(context.channel())))
            .map_err(ToolError::Model)?;
        let loop_id = context.loop_id().unwrap_or_default();
        Ok(ToolResult::text(format!(
            "{loop_id} {}",
            context.chat_id().unwrap_or("none")
        )))
    });
    let (inner, model) = agent("agent", [call([("look", json!({}))]), reply("ok")]);
    let board: Arc<dyn Blackboard> = Arc::new(MemoryBlackboard::new());
    let (builder, outer_model) = TestModel::playing([
        call([("look", json!({})), ("agent", json!({"task": "x"}))]),
        reply("Done."),
    ]);
    let mut conversation = builder
        .tools([look.clone()])
        .tool(inner.with_tool(look))
        .blackboard(board.clone())
        .build()
        .unwrap();
    let context = ToolContext::new().with("channel", "mail").with("chat_id", "7");
    conversation.turn("go").context(context).run().await.unwrap();
    let seen: Vec<_> = board.entries().iter().map(|entry| entry.value().clone()).collect();
    assert_eq!(seen, [json!("mail"), json!("mail")]);
    let (inner_history, outer_history) = (model.request(1).messages, outer_model.request(1).messages);
    let (inner_result, outer_result) = (tool_results(&inner_history)[0], tool_results(&outer_history)[0]);
    assert!(
        inner_result.ends_with(" 7") && outer_result.ends_with(" 7"),
        "{inner_result}, {outer_result}"
    );
    assert_ne!(inner_result, outer_result, "each loop has its own id");
}

// accept: 65
#[tokio::test]
async fn agents_are_refused_beyond_the_nesting_limit() {
    let mut models = Vec::new();
    let mut tool: Option<AgenticTool> = None;
    for level in (0..=AGENT_DEPTH_MAX).rev() {
        let name = format!("level{level}");
        let steps: Vec<Step> = match &tool {
            Some(inner) => {
                let inner_name = inner.definition().name().to_owned();
                vec![raw_calls(vec![(inner_name, r#"{"task":"x"}"#.to_owned())]), reply("ok")]
            }
            None => Vec::new(),
        };
        let (agent_tool, model) = agent(&name, steps);
        let agent_tool = match tool.take() {
            Some(inner) => agent_tool.with_tool(inner),
            None => agent_tool,
        };
        models.push(model);
        tool = Some(agent_tool);
    }
    let (builder, _) = TestModel::playing([call([("level0", json!({"task": "x"}))]), reply("Done.")]);
    builder.tool(tool.unwrap()).build().unwrap().run("go").await.unwrap();
    assert_eq!(models[0].request_count(), 0, "the deepest agent does not run");
    let caller_history = models[1].request(1).messages;
    let answer = tool_results(&caller_history)[0];
    assert!(answer.contains("agents may be nested"), "{answer}");
}

// accept: 133, accept: 93
#[tokio::test]
async fn an_operator_error_stops_every_outer_agent() {
    let broken = tool("db", |_, _| {
        Err(ToolError::Operator(Error::new(
            ErrorKind::Configuration,
            Phase::Execute,
            "the database is down",
        )))
    });
    let payments = Arc::new(Mutex::new(0));
    let count = payments.clone();
    let pay = tool("pay", move |_, _| {
        *count.lock().unwrap() += 1;
        Ok(ToolResult::text("paid"))
    });
    let (inner, _) = agent("agent", [call([("pay", json!({}))]), call([("db", json!({}))])]);
    let (builder, _) = TestModel::playing([call([("agent", json!({"task": "x"}))])]);
    let inner = inner.with_tools([pay, broken]);
    let error = builder.tool(inner).build().unwrap().run("go").await.unwrap_err();
    assert_eq!(error.outcome.stop, StopReason::ToolFailed);
    assert_valid(&error.outcome.history);
    let answer = tool_results(&error.outcome.history)[0];
    assert!(
        answer.contains("may have taken effect") && !answer.contains("not run"),
        "the agent has paid: {answer}"
    );
    assert_eq!(*payments.lock().unwrap(), 1);
}

// accept: 85
#[tokio::test]
async fn an_agent_waits_for_its_background_calls() {
    let slow = tool("slow", |_, context| {
        context.background_task()?.spawn(async { Ok(ToolResult::text("42")) });
        Ok(ToolResult::background("started"))
    });
    let (inner, model) = agent(
        "agent",
        [call([("slow", json!({}))]), reply("Not yet."), reply("It is 42.")],
    );
    let result = call_with(&inner.with_tool(slow), json!({"task": "x"}), &ToolContext::new())
        .await
        .unwrap();
    // The late result can arrive before or after the second inference.
    assert!(
        ["It is 42.", "Not yet."].contains(&result.for_llm.as_str()),
        "{}",
        result.for_llm
    );
    let last = model.request(model.request_count() - 1).messages;
    assert!(
        last.iter().any(|message| message.content().ends_with("\n42")),
        "the model read the late result"
    );
}

// accept: 65
#[tokio::test]
async fn an_agent_without_a_model_returns_a_configuration_error() {
    let result = call_with(
        &AgenticTool::new("agent", "Works."),
        json!({"task": "x"}),
        &ToolContext::new(),
    )
    .await;
    assert!(result.unwrap_err().to_string().contains("no model"));
}

/// The topic of a question.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct Topic {
    name: String,
}

// accept: 12
#[tokio::test]
async fn one_configuration_serves_a_conversation_an_agentic_tool_and_a_subagent() {
    let look = || call([("look", json!({}))]);
    let steps = [
        call([("asker", json!({"task": "x"}))]),
        look(),
        reply("asked"),
        call([("helper", json!({"name": "tea"}))]),
        look(),
        look(),
        look(),
        reply("Done."),
    ];
    let (_, model) = TestModel::playing(steps);
    let config = LoopConfig::new()
        .with_model(model.clone())
        .with_system("Be brief.")
        .with_tools([echo("look")])
        .with_iterations_max(3);
    let agent = |name: &str| AgenticTool::new(name, "Works.").with_config(config.clone());
    let helper = Subagent::of(agent("helper")).consuming::<Topic>().unwrap();
    let builder = Conversation::builder().config(config.clone()).tool(agent("asker"));
    let outcome = builder.tool(helper).build().unwrap().run("go").await.unwrap();
    let answers = tool_results(&outcome.history);
    assert_eq!((answers[0], outcome.text()), ("asked", "Done."));
    assert!(answers[1].contains("limit of 3 iterations"), "{}", answers[1]);
    for inference in 0..model.request_count() {
        let request = model.request(inference);
        assert_eq!(request.messages[0].content(), "Be brief.", "inference {inference}");
        assert_eq!(request.names[0], "look", "inference {inference}");
    }
}

// accept: 12, accept: 70
#[tokio::test]
async fn the_strategy_of_an_agent_adds_its_initial_tools_and_its_guidance() {
    struct Guided;
    impl crate::injection::InjectionStrategy for Guided {
        fn evaluate(&self, _: &crate::injection::InjectionContext<'_>) -> crate::injection::Injection {
            crate::injection::Injection::none()
        }

        fn initial_tools(&self) -> Vec<Arc<dyn Tool>> {
            vec![echo("first")]
        }

        fn guidance(&self) -> Option<&str> {
            Some("Call `first` first.")
        }
    }
    let (tool, model) = agent("agent", [reply("ok")]);
    call_with(&tool.with_strategy(Guided), json!({"task": "x"}), &ToolContext::new())
        .await
        .unwrap();
    let request = model.request(0);
    assert_eq!(request.names, ["first"]);
    assert!(request.messages[0].content().ends_with("Call `first` first."));
}
