//! Tools that are added again with another definition.

use super::*;

/// Returns the tool `name` with one string parameter. The result contains the name and the value of the parameter.
fn tool_with_parameter(name: &str, parameter: &'static str) -> NativeTool {
    let properties = json!({parameter: {"type": "string"}});
    let schema =
        json!({"type": "object", "properties": properties, "required": [parameter], "additionalProperties": false});
    let tool = NativeTool::new(
        name,
        format!("Takes {parameter}."),
        schema,
        move |arguments, _| async move { Ok(ToolResult::text(format!("{parameter} = {}", arguments[parameter]))) },
    );
    tool.unwrap()
}

/// Returns a facade with the tool `query`. The argument `by` of the facade selects the parameter of `query`: `name` or
/// `number`.
fn selectable_facade() -> Facade {
    let schema = json!({"type": "object", "properties": {"by": {"type": "string"}}});
    let select = |arguments: &Arguments, _: &ToolContext| {
        let parameter = if arguments["by"] == "name" { "name" } else { "number" };
        Ok(vec![Arc::new(tool_with_parameter("query", parameter)) as Arc<dyn Tool>])
    };
    Facade::builder("db", "Works with a database.")
        .select_with(schema, select)
        .build()
        .unwrap()
}

// accept: 91, accept: 61, accept: 133
#[tokio::test]
async fn a_facade_opened_with_another_selection_declares_and_checks_the_new_schema() {
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
    let outcome = builder.tool(selectable_facade()).run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(model.request(1).serialised_tools[1].contains(r#""required":["name"]"#));
    assert!(
        model.request(3).serialised_tools[1].contains(r#""required":["number"]"#),
        "{:?}",
        model.request(3).serialised_tools
    );
    assert!(model.request(3).serialised_tools[1].contains("Takes number."));
    assert_eq!(results[1], r#"name = "x""#);
    assert!(
        results[3].contains("`number` (string, required)"),
        "the error describes the new schema: {}",
        results[3]
    );
    assert_eq!(results[4], r#"number = "x""#);
    let (builder, resumed_model) = TestModel::playing([query("number"), reply("ok")]);
    let history = outcome.history.clone();
    let outcome = builder
        .tool(selectable_facade())
        .history(history)
        .resume(model.events())
        .run("again")
        .await
        .unwrap();
    assert_eq!(
        resumed_model.request(0).serialised_tools,
        model.request(5).serialised_tools
    );
    assert_eq!(*tool_results(&outcome.history).last().unwrap(), r#"number = "x""#);
}

// accept: 91
#[tokio::test]
async fn with_the_gateway_the_facade_result_describes_the_new_schema() {
    let through = |parameter: &str| call([("call_tool", json!({"name": "query", "arguments": {parameter: "x"}}))]);
    let select = |by: &str| call([("db", json!({"by": by}))]);
    let (builder, model) = TestModel::playing([select("name"), select("number"), through("number"), reply("ok")]);
    let builder = builder.tool(selectable_facade()).delivery(model::ToolDelivery::Gateway);
    let outcome = builder.run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(
        results[1].contains("Takes number.") && results[1].contains(r#"["number"]"#),
        "{}",
        results[1]
    );
    assert_eq!(results[2], r#"number = "x""#);
    assert_eq!(model.request(3).serialised_tools, model.request(0).serialised_tools);
}

// accept: 129
#[tokio::test]
async fn a_locked_call_does_not_run_if_its_unlocking_changes_the_parameters() {
    let redefine = |context: &InjectionContext<'_>| match context.call().name.as_str() {
        "change" => Injection::add(vec![Arc::new(tool_with_parameter("put", "number"))]),
        _ => Injection::none(),
    };
    let playbook = Playbook::new().with_locked_tool(Arc::new(tool_with_parameter("put", "name")), Unlock::by("change"));
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
async fn changes_of_a_shared_tool_set_during_a_run_apply_from_the_next_request() {
    let shared_tools = SharedToolSet::new();
    shared_tools.register(tool_with_parameter("look", "at"));
    let changed_set = shared_tools.clone();
    let change = tool("change", move |_, _| {
        changed_set.register(tool_with_parameter("look", "name"));
        changed_set.register(
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
    assert!(model.request(2).serialised_tools[0].contains("Takes name."));
    assert!(shared_tools.unregister("new"));
    conversation.run("again").await.unwrap();
    assert_eq!(model.request(4).names, ["look", "change"]);
}
