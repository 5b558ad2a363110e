//! Tools that are added again with another definition.

use super::*;

/// Returns the tool `name` with one string parameter. The result shows the value of the parameter.
fn tool_taking(name: &str, parameter: &'static str) -> NativeTool {
    let schema = json!({"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter], "additionalProperties": false});
    let tool = NativeTool::new(
        name,
        format!("Takes {parameter}."),
        schema,
        move |arguments, _| async move { Ok(ToolResult::text(format!("{parameter} = {}", arguments[parameter]))) },
    );
    tool.unwrap()
}

/// A facade whose tool `query` takes a parameter of the selected name.
fn selectable() -> Facade {
    let schema = json!({"type": "object", "properties": {"by": {"type": "string"}}});
    let select = |arguments: &Arguments, _: &ToolContext| {
        let parameter = if arguments["by"] == "name" { "name" } else { "number" };
        Ok(vec![Arc::new(tool_taking("query", parameter)) as Arc<dyn Tool>])
    };
    Facade::builder("db", "Works with a database.")
        .select_with(schema, select)
        .build()
        .unwrap()
}

// accept: 91, accept: 61, accept: 133
#[tokio::test]
async fn a_facade_opened_with_another_selection_declares_the_new_schema_with_which_arguments_are_checked() {
    let select = |by: &str| call([("db", json!({"by": by}))]);
    let query = |parameter: &str| call([("query", json!({parameter: "x"}))]);
    let steps = vec![
        select("name"),
        query("name"),
        select("number"),
        query("name"),
        query("number"),
        reply("ok"),
    ];
    let (builder, model) = TestModel::playing(steps);
    let outcome = builder.tool(selectable()).run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(model.request(1).serialised[1].contains(r#""required":["name"]"#));
    assert!(
        model.request(3).serialised[1].contains(r#""required":["number"]"#),
        "{:?}",
        model.request(3).serialised
    );
    assert!(model.request(3).serialised[1].contains("Takes number."));
    assert_eq!(results[1], r#"name = "x""#);
    assert!(
        results[3].contains("`number` (string, required)"),
        "the correction has the new schema: {}",
        results[3]
    );
    assert_eq!(results[4], r#"number = "x""#);
    let (builder, resumed) = TestModel::playing([query("number"), reply("ok")]);
    let history = outcome.history.clone();
    let outcome = builder
        .tool(selectable())
        .history(history)
        .resume(model.events())
        .run("again")
        .await
        .unwrap();
    assert_eq!(resumed.request(0).serialised, model.request(5).serialised);
    assert_eq!(*tool_results(&outcome.history).last().unwrap(), r#"number = "x""#);
}

// accept: 91
#[tokio::test]
async fn behind_a_gateway_the_result_describes_the_new_schema() {
    let through = |parameter: &str| call([("call_tool", json!({"name": "query", "arguments": {parameter: "x"}}))]);
    let select = |by: &str| call([("db", json!({"by": by}))]);
    let (builder, model) = TestModel::playing([select("name"), select("number"), through("number"), reply("ok")]);
    let builder = builder.tool(selectable()).delivery(model::Delivery::Gateway);
    let outcome = builder.run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(
        results[1].contains("Takes number.") && results[1].contains(r#"["number"]"#),
        "{}",
        results[1]
    );
    assert_eq!(results[2], r#"number = "x""#);
    assert_eq!(model.request(3).serialised, model.request(0).serialised);
}

// accept: 129
#[tokio::test]
async fn a_guarded_call_written_for_an_earlier_schema_of_the_same_response_does_not_run() {
    let redefine = |context: &InjectionContext<'_>| match context.call().name.as_str() {
        "change" => Injection::add(vec![Arc::new(tool_taking("put", "number"))]),
        _ => Injection::none(),
    };
    let playbook = Playbook::new().with_locked_tool(Arc::new(tool_taking("put", "name")), Unlock::by("change"));
    let put = |parameter: &str| ("put", json!({parameter: "x"}));
    let steps = [call([("change", json!({})), put("name")]), call([put("number")])];
    let results = run_steps(steps, |builder| {
        builder.tools([echo("change")]).playbook(playbook).strategy(redefine)
    })
    .await;
    assert!(results[1].contains("changed the parameters of `put`"), "{}", results[1]);
    assert!(results[1].contains("`number` (string, required)"), "{}", results[1]);
    assert_eq!(results[2], r#"number = "x""#);
}

// accept: 91
#[tokio::test]
async fn a_registry_that_changes_while_the_conversation_runs_is_followed_from_the_next_request() {
    let shared_tools = SharedToolSet::new();
    shared_tools.register(tool_taking("look", "at"));
    let registry = shared_tools.clone();
    let change = tool("change", move |_, _| {
        registry.register(tool_taking("look", "name"));
        registry.register(
            NativeTool::new("new", "Is new.", json!({"type": "object"}), |_, _| async {
                Ok(ToolResult::text(""))
            })
            .unwrap(),
        );
        Ok(ToolResult::text("changed"))
    });
    let look = |parameter: &str| call([("look", json!({parameter: "x"}))]);
    let (builder, model) = TestModel::playing([look("at"), invoke("change"), look("name"), reply("ok"), reply("ok")]);
    let mut conversation = builder.shared_tools(&shared_tools).tools([change]).build().unwrap();
    let outcome = conversation.run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!((results[0], results[2]), (r#"at = "x""#, r#"name = "x""#));
    assert_eq!(model.request(0).names, ["look", "change"]);
    assert_eq!(model.request(2).names, ["look", "change", "new"]);
    assert!(model.request(2).serialised[0].contains("Takes name."));
    assert!(shared_tools.unregister("new"));
    conversation.run("again").await.unwrap();
    assert_eq!(model.request(4).names, ["look", "change"]);
}
