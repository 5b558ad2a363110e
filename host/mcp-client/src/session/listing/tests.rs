#![allow(clippy::unwrap_used)]

use super::*;

fn config() -> ServerConfig {
    ServerConfig::process("shop", "x").unwrap()
}

fn tool(name: &str, schema: Value) -> Tool {
    Tool::new(name.to_owned(), "", Arc::new(schema.as_object().unwrap().clone()))
}

fn object() -> Value {
    json!({"type": "object"})
}

// attack: G9
#[test]
fn tools_with_deceptive_or_duplicate_names_are_withheld() {
    let names = [
        "add",
        "add",
        "a\nb",
        "a\u{1b}[31m",
        "a#b",
        "f(x)",
        "",
        "\u{202e}x",
        "über",
        "a.b/c-d",
    ];
    let listed = names.iter().map(|name| tool(name, object())).collect();
    let (tools, withheld) = validate_tools(listed, &config(), &Redaction::default());
    let accepted_ids: Vec<_> = tools.iter().map(|tool| tool.definition.id.as_str()).collect();
    assert_eq!(accepted_ids, ["mcp:shop#add", "mcp:shop#über", "mcp:shop#a.b/c-d"]);
    assert_eq!(withheld.len(), 7);
    assert!(withheld.iter().all(|tool| !tool.name.contains('\u{1b}')));
}

#[test]
fn a_tool_is_usable_although_a_keyword_of_its_schema_cannot_be_checked() {
    let email = "^(?!\\.)(?!.*\\.\\.)([a-z]*)@([a-z]+\\.)+[a-z]{2,}$";
    let deep = (0..40).fold(
        json!({}),
        |schema, _| json!({"type": "object", "properties": {"x": schema}}),
    );
    let schemas = [
        json!({"type": "object", "properties": {"email": {"type": "string", "pattern": email}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/schema.json"}}}),
        json!({"type": "object", "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}, "properties": {"n": {"$ref": "#/$defs/n"}}}),
        json!({"$ref": "#"}),
        json!({"type": "object", "properties": {"a": {"pattern": "("}}}),
        json!({"type": "object", "properties": {"a": {"title": null}}}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}),
        json!({"type": ["object", "null"]}),
        deep,
    ];
    let listed = schemas.iter().enumerate();
    let listed = listed
        .map(|(index, schema)| tool(&format!("t{index}"), schema.clone()))
        .collect();
    let (tools, withheld) = validate_tools(listed, &config(), &Redaction::default());
    assert!(withheld.is_empty(), "{withheld:?}");
    let email = &tools[0].definition.input_schema["properties"]["email"];
    assert_eq!(*email, json!({"type": "string"}));
    assert!(
        tools
            .iter()
            .all(|tool| tool.definition.input_schema["type"] == "object")
    );
}

// attack: G9
#[test]
fn a_tool_whose_arguments_are_not_an_object_is_withheld() {
    let (tools, withheld) = validate_tools(
        vec![
            tool("t", json!({"type": "string"})),
            tool("u", json!({"title": "x".repeat(70_000)})),
        ],
        &config(),
        &Redaction::default(),
    );
    assert!(tools.is_empty());
    assert!(withheld[0].reason.contains("\"object\""), "{withheld:?}");
    assert!(withheld[1].reason.contains("at most 65536"), "{withheld:?}");
}

#[test]
fn keywords_of_common_schema_generators_are_accepted() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "$id": "x", "type": "object", "unevaluatedProperties": false,
        "properties": {"id": {"type": "string", "$comment": "y"}, "$id": {"type": "integer"}}, "required": ["id"],
        "$defs": {"a": {"$anchor": "a", "type": "object"}},
    });
    let (tools, withheld) = validate_tools(
        vec![tool("t", schema), tool("u", json!({}))],
        &config(),
        &Redaction::default(),
    );
    assert!(withheld.is_empty(), "{withheld:?}");
    let schema = &tools[0].definition.input_schema;
    assert!(schema.get("$id").is_none() && schema.get("unevaluatedProperties").is_none());
    assert!(schema.pointer("/properties/id").is_some() && schema.pointer("/properties/$id").is_some());
    assert!(schema.pointer("/$defs/a/$anchor").is_none());
    assert_eq!(tools[1].definition.input_schema["type"], "object");
}

// attack: G9
#[test]
fn secrets_in_names_descriptions_and_schemas_are_redacted() {
    let redaction = Redaction::default();
    redaction.add("hunter2222");
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "description": "as hunter2222"}}});
    let tool_with_description = |text: String| {
        let mut tool = tool("add", schema.clone());
        tool.description = Some(text.into());
        tool
    };
    let validate_one = |tool: Tool| validate_tools(vec![tool], &config(), &redaction);
    let (tools, _) = validate_one(tool_with_description("Adds for hunter2222.".to_owned()));
    let definition = &tools[0].definition;
    assert_eq!(definition.description, "Adds for [redacted].");
    assert_eq!(
        definition.input_schema["properties"]["a"]["description"],
        "as [redacted]"
    );
    let text_with_cut_secret = format!("{}hunter222", "x".repeat(DESCRIPTION_CHARS_MAX - 9));
    let (tools, _) = validate_one(tool_with_description(text_with_cut_secret));
    assert!(!tools[0].definition.description.contains("hunter"));
    let (tools, withheld) = validate_one(tool("get_hunter2222", schema.clone()));
    assert!(tools.is_empty());
    assert_eq!(withheld[0].name, "get_[redacted]");
}
