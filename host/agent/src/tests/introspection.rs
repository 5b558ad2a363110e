//! The process tools and the blackboard tools.

use super::*;
use crate::model::{Cost, DescribedModel, Price};
use toolwit_core::{Artifact, Blackboard, BlackboardEntry, MemoryBlackboard};

async fn call_by_name(
    tools: &[Arc<dyn Tool>],
    name: &str,
    arguments: Value,
    context: &ToolContext,
) -> Result<ToolResult, ToolError> {
    let tool = tools.iter().find(|tool| tool.definition().name() == name).unwrap();
    tool.call(arguments.as_object().unwrap().clone(), context).await
}

// accept: 100, accept: 144
#[tokio::test]
async fn process_tools_return_the_status_the_budget_and_the_usage_of_the_process() {
    let names = [
        "process_status",
        "process_budget",
        "process_cost",
        "process_history",
        "process_tools_stats",
        "process_models",
    ];
    let embed = tool("embed", |_, context| {
        let tokens = TokenUsage::new(7, 0, 0);
        AgentProcess::of(&context)?.record_model_usage(ModelUsageKind::Embedding, "embedder", tokens, Cost::usd(0.5));
        Ok(ToolResult::text("embedded"))
    });
    let with_usage = |step: Step| edit_response(step, |response| response.usage = TokenUsage::new(100, 0, 10));
    let process_calls = names.map(|name| (name.to_owned(), "{}".to_owned())).to_vec();
    let (_, model) = TestModel::playing([
        with_usage(call([("embed", json!({}))])),
        with_usage(raw_calls(process_calls)),
        reply("Done."),
    ]);
    let mut conversation = Conversation::builder()
        .model(DescribedModel::new(model.clone()).with_price(Price::per_million(1.0, 1.0)))
        .goal("look around")
        .budget(Budget {
            tokens_max: Some(1_000),
            cost_max: Some(Cost::usd(1.0)),
            calls_max: Some(10),
            ..Budget::default()
        })
        .tools([embed])
        .tools(ProcessTools::tools().unwrap())
        .build()
        .unwrap();
    let outcome = conversation.run("go").await.unwrap();
    let reports: Vec<Value> = tool_results(&outcome.history)[1..]
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    let [status, budget, cost, history, tools, models] = &reports[..] else {
        panic!("{reports:?}")
    };
    assert_eq!(status["id"], conversation.process().id());
    assert_eq!(
        (&status["goal"], &status["state"]["status"]),
        (&json!("look around"), &json!("running"))
    );
    assert!(status["running_ms"].is_u64());
    assert_eq!(budget["limits"]["tokens"], 1_000);
    assert_eq!(budget["left"]["tokens"], 1_000 - 2 * 110 - 7);
    assert_eq!(
        (&budget["left"]["calls"], &budget["left"]["wall_ms"]),
        (&json!(3), &Value::Null)
    );
    assert_eq!(cost["embedding"]["cost_usd"], 0.5);
    assert_eq!(
        (&cost["chat"]["invocations"], &cost["chat"]["input_tokens"]),
        (&json!(2), &json!(200))
    );
    assert_eq!(history["actions"][0]["name"], "embed");
    assert_eq!(tools["embed"]["calls"], 1);
    let models: Vec<_> = models["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| &model["model"])
        .collect();
    assert_eq!(models, ["test", "embedder"]);
}

// accept: 100, accept: 127
#[tokio::test]
async fn process_and_blackboard_tools_return_an_error_outside_a_conversation() {
    let tools = ProcessTools::tools().unwrap();
    for tool in &tools {
        let error = tool.call(Arguments::new(), &ToolContext::new()).await.unwrap_err();
        assert!(error.to_string().contains("no process"), "{error}");
    }
    let tools = BlackboardTools::new().tools().unwrap();
    let error = call_by_name(&tools, "blackboard_list", json!({}), &ToolContext::new())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no blackboard"), "{error}");
}

fn blackboard_context() -> ToolContext {
    let blackboard: Arc<dyn Blackboard> = Arc::new(MemoryBlackboard::new());
    let person = |name: &str| {
        Artifact::new(
            "com.example.Person",
            json!({"name": name, "info": format!("Person {name}")}),
        )
    };
    blackboard.put_named("boss", person("Ada")).unwrap();
    blackboard
        .put(Artifact::new("Page", json!({"url": "/x", "content": "words"})))
        .unwrap();
    blackboard.put(person("Bob")).unwrap();
    blackboard.put(Artifact::new("Sum", json!({"total": 3}))).unwrap();
    ToolContext::new().with_blackboard(blackboard)
}

// accept: 101, accept: 144
#[tokio::test]
async fn blackboard_tools_return_the_objects_of_the_blackboard() {
    let (tools, context) = (BlackboardTools::new().tools().unwrap(), blackboard_context());
    let call_tool = |name: &'static str, arguments: Value| {
        let (tools, context) = (&tools, &context);
        async move { call_by_name(tools, name, arguments, context).await.unwrap() }
    };
    let list = call_tool("blackboard_list", json!({})).await.for_llm;
    assert_eq!(
        list,
        "0: com.example.Person `boss`\n1: Page\n2: com.example.Person\n3: Sum"
    );
    assert_eq!(
        call_tool("blackboard_get", json!({"name": "boss"})).await.for_llm,
        "Person Ada"
    );
    assert_eq!(
        call_tool("blackboard_last", json!({"type": "Person"})).await.for_llm,
        "Person Bob"
    );
    assert_eq!(
        call_tool("blackboard_last", json!({"type": "com.example.Person"}))
            .await
            .for_llm,
        "Person Bob"
    );
    assert_eq!(
        call_tool("blackboard_last", json!({"type": "Page"})).await.for_llm,
        "words"
    );
    assert_eq!(
        call_tool("blackboard_last", json!({"type": "Sum"})).await.for_llm,
        r#"{"total":3}"#
    );
    assert_eq!(
        call_tool("blackboard_describe", json!({"name": "boss"})).await.for_llm,
        "com.example.Person `boss`\nPerson Ada"
    );
    assert_eq!(
        call_tool("blackboard_count", json!({"type": "Person"})).await.for_llm,
        "2"
    );
    let missing = call_tool("blackboard_get", json!({"name": "hero"})).await;
    assert!(
        missing.is_error() && missing.for_llm.contains("`boss`"),
        "{}",
        missing.for_llm
    );
    assert!(call_tool("blackboard_last", json!({"type": "Order"})).await.is_error());
}

// accept: 101
#[tokio::test]
async fn blackboard_tools_return_objects_in_a_custom_format() {
    let format_kind = |entry: &BlackboardEntry| format!("<{}>", entry.kind());
    let tools = BlackboardTools::new().with_format(format_kind).tools().unwrap();
    let result = call_by_name(&tools, "blackboard_get", json!({"name": "boss"}), &blackboard_context())
        .await
        .unwrap();
    assert_eq!(result.for_llm, "<com.example.Person>");
}
