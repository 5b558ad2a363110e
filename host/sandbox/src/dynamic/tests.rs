#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::validate::validate;
use crate::values::dynamic_export::{DiscoveredTool, ListedTool};
use toolwit_core::limits::DYNAMIC_TOOLS_MAX;
use toolwit_core::{InputValidator, ToolDefinition, ToolId};

fn tool(name: &str, schema: impl ToString) -> ListedTool {
    ListedTool {
        name: name.to_owned(),
        description: "Does it.".to_owned(),
        input_schema: schema.to_string(),
        output_schema: None,
        effect: None,
    }
}

/// Validates tools with a deadline that the test does not reach.
fn validate_in_time(tools: Vec<ListedTool>) -> Result<Vec<DiscoveredTool>, String> {
    validate(tools, Instant::now() + Duration::from_secs(60))
}

/// Returns the reason why tools are refused.
fn refusal(tools: Vec<ListedTool>) -> String {
    validate_in_time(tools).unwrap_err()
}

/// Returns the reason why a schema is refused.
fn schema_refusal(schema: impl ToString) -> String {
    refusal(vec![tool("t", schema)])
}

#[test]
fn valid_tools_are_accepted() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"id": {"$ref": "#/$defs/id"}, "$ref": {"type": "string", "pattern": "^a+$"}},
        "$defs": {"id": {"type": "string"}},
    });
    let mut soup = tool("Soup_of-the-day", &schema);
    soup.description = format!("  Soup\u{1b}[2J{}", "x".repeat(10_000));
    soup.output_schema = Some("{\"type\": \"string\"}".to_owned());
    let accepted = serde_json::to_value(validate_in_time(vec![soup]).unwrap()).unwrap();
    assert_eq!(accepted[0]["input_schema"], schema);
    let description = accepted[0]["description"].as_str().unwrap();
    assert!(description.starts_with("Soup[2Jx"), "control characters are dropped");
    assert_eq!(description.chars().count(), 8_192, "a long text is cut");
    assert_eq!(validate_in_time(Vec::new()).unwrap(), []);
}

#[test]
fn invalid_and_duplicate_names_are_refused() {
    let object = json!({"type": "object"});
    for name in ["", "a b", "1st", "a#b", "a/b", "\u{1b}[2J", &"x".repeat(65)] {
        assert!(
            refusal(vec![tool(name, &object)]).contains("cannot be the name"),
            "{name:?}"
        );
    }
    for (first, second) in [("a", "a"), ("get-it", "get_it"), ("Get", "get")] {
        let why = refusal(vec![tool(first, &object), tool(second, &object)]);
        assert!(why.contains("the same name"), "{why}");
    }
    let many = (0..=DYNAMIC_TOOLS_MAX).map(|index| tool(&format!("t{index}"), &object));
    assert!(refusal(many.collect()).contains("at most 256"));
}

/// Returns the input schema of a tool as it is used.
fn used_schema(schema: impl ToString) -> Value {
    let tools = validate_in_time(vec![tool("t", schema)]).unwrap();
    serde_json::to_value(tools).unwrap()[0]["input_schema"].clone()
}

// attack: B4
#[test]
fn references_to_other_documents_are_left_out() {
    let property = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    for reference in [
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "other.json#/a",
        "#anchor",
        "#/%24defs/a",
        "#/$defs/none",
    ] {
        assert_eq!(
            used_schema(property(json!({"$ref": reference}))),
            property(json!({})),
            "{reference}"
        );
    }
    let cycle = property(json!({"$ref": "#"}));
    assert_eq!(used_schema(&cycle), cycle);
}

#[test]
fn invalid_and_oversized_schemas_are_refused() {
    assert!(schema_refusal("{").contains("not JSON"));
    assert!(schema_refusal(json!({"type": "string"})).contains("\"object\""));
    assert!(schema_refusal(json!(true)).contains("\"object\""));
    let too_deep_to_parse = "[".repeat(50_000);
    assert!(schema_refusal(too_deep_to_parse).contains("not JSON"));
    let long = json!({"type": "object", "title": "x".repeat(70_000)});
    assert!(schema_refusal(long).contains("at most 65536"));
    let mut output = tool("t", json!({"type": "object"}));
    output.output_schema = Some("[".to_owned());
    assert!(refusal(vec![output]).contains("its output schema is not JSON"));
}

// attack: B4
#[test]
fn keywords_that_are_invalid_or_expensive_are_left_out() {
    let property = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    assert_eq!(
        used_schema(json!({"type": "object", "properties": 1})),
        json!({"type": "object"})
    );
    // A pattern that requires backtracking, and one with a large compiled form.
    for pattern in ["(?=a)b", "(\\w{1000}){1000}"] {
        assert_eq!(
            used_schema(property(json!({"pattern": pattern}))),
            property(json!({})),
            "{pattern}"
        );
    }
    let patterns: serde_json::Map<_, _> = (0..300).map(|index| (format!("^{index}$"), json!({}))).collect();
    let used = used_schema(json!({"type": "object", "patternProperties": patterns}));
    assert_eq!(used["patternProperties"].as_object().unwrap().len(), 256);
    for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
        assert_eq!(used_schema(property(json!({keyword: false}))), property(json!({})));
        let as_property_name = json!({"type": "object", "properties": {keyword: {"type": "string"}}});
        assert_eq!(used_schema(&as_property_name), as_property_name);
    }
}

// attack: B4
#[test]
fn validation_time_does_not_double_with_each_level_of_a_schema() {
    type AddLevel = fn(Value) -> Value;
    // The number of levels, and the function that adds a level. The parser allows about 120 levels that each add one level of
    // JSON, and 60 levels that each add two.
    let keywords: [(usize, AddLevel); 16] = [
        (110, |schema| json!({"not": schema})),
        (55, |schema| json!({"allOf": [schema, {"type": ["object", "array"]}]})),
        (55, |schema| json!({"anyOf": [schema, false]})),
        (55, |schema| json!({"oneOf": [schema, false]})),
        (
            110,
            |schema| json!({"if": schema, "then": {"minProperties": 1}, "else": {"not": {}}}),
        ),
        (110, |schema| json!({"if": {}, "then": schema, "else": {}})),
        (
            55,
            |schema| json!({"properties": {"a": schema}, "required": ["a"], "additionalProperties": false}),
        ),
        (
            55,
            |schema| json!({"properties": {"a": schema}, "additionalProperties": true}),
        ),
        (110, |schema| json!({"additionalProperties": schema})),
        (
            110,
            |schema| json!({"type": "array", "items": schema, "minItems": 1, "uniqueItems": true}),
        ),
        (55, |schema| json!({"prefixItems": [schema], "items": {}})),
        (
            110,
            |schema| json!({"contains": schema, "minContains": 1, "maxContains": 3}),
        ),
        (110, |schema| json!({"propertyNames": schema})),
        (55, |schema| json!({"dependentSchemas": {"a": schema}})),
        (
            55,
            |schema| json!({"patternProperties": {"^a": schema}, "additionalProperties": true}),
        ),
        (55, |schema| json!({"patternProperties": {"^a": schema, "b+c*d$": {}}})),
    ];
    let started = std::time::Instant::now();
    for (levels, add_level) in keywords {
        let leaf = json!({"properties": {"b": {"type": "string"}}});
        let schema = (0..levels).fold(leaf, |schema, _| add_level(schema));
        let schema = json!({"type": "object", "allOf": [schema]});
        validate_in_time(vec![tool("t", &schema)]).unwrap();
        let definition = ToolDefinition::new(ToolId::from_text("p#t"), "t", "", schema);
        let validator = InputValidator::of_untrusted(&definition).unwrap();
        for instance in [
            json!({}),
            (0..40).fold(json!(1), |value, _| json!({"a": value})),
            json!({"a": (0..40).fold(json!(1), |value, _| json!([value]))}),
        ] {
            let _ = validator.check(instance.as_object().unwrap().clone());
        }
    }
    let patterns = |levels| {
        (0..levels).fold(
            json!({}),
            |schema, _| json!({"patternProperties": {"^a": schema, "b+c*d$": {}}}),
        )
    };
    for (levels, is_checked) in [(5, true), (14, false)] {
        let schema = used_schema(json!({"type": "object", "not": patterns(levels)}));
        let definition = ToolDefinition::new(ToolId::from_text("p#t"), "t", "", schema);
        let validator = InputValidator::of_untrusted(&definition).unwrap();
        let outcome = validator.check(serde_json::Map::new());
        assert_eq!(
            outcome.is_err(),
            is_checked,
            "a schema that multiplies too often is not checked"
        );
    }
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn data_in_a_schema_is_not_interpreted() {
    let data = json!({"id": "42", "$ref": "http://a", "$schema": "b", "unevaluatedProperties": 1, "pattern": "("});
    for schema in [
        json!({"type": "object", "examples": [data]}),
        json!({"type": "object", "properties": {"a": {"default": data, "enum": [data]}, "b": {"const": data}}}),
        json!({"type": "object", "properties": {"default": {"type": "string"}, "id": {"type": "string"}}}),
    ] {
        validate_in_time(vec![tool("t", schema)]).unwrap();
    }
    let deep = (0..40).fold(json!(1), |value, _| json!([value]));
    validate_in_time(vec![tool("t", json!({"type": "object", "default": deep}))]).unwrap();
}

#[test]
fn schemas_of_one_component_share_a_budget() {
    let patterns: serde_json::Map<_, _> = (0..60).map(|index| (format!("^{index}$"), json!({}))).collect();
    let schema = json!({"type": "object", "patternProperties": patterns});
    let tools = |count, schema: &Value| (0..count).map(|index| tool(&format!("t{index}"), schema)).collect();
    let accepted = serde_json::to_value(validate_in_time(tools(5, &schema)).unwrap()).unwrap();
    let count = |tool: usize| {
        accepted[tool]["input_schema"]["patternProperties"]
            .as_object()
            .unwrap()
            .len()
    };
    assert_eq!(
        (count(0), count(4)),
        (60, 16),
        "patterns beyond the limit of 256 are left out"
    );
    let schema = json!({"type": "object", "properties": {"a": {"enum": (0..8_000).collect::<Vec<_>>()}}});
    validate_in_time(tools(8, &schema)).unwrap();
    assert!(refusal(tools(9, &schema)).contains("together have more than 65536 JSON values"));
    let past_deadline = validate(tools(1, &json!({"type": "object"})), Instant::now());
    assert!(past_deadline.unwrap_err().contains("takes too long"));
}

#[test]
fn error_messages_are_short_and_printable() {
    let long = format!("\u{1b}[2J{}", "x".repeat(10_000));
    let why = schema_refusal(format!("{{{0}: 1, {0}: 2}}", json!(long)));
    assert!(why.len() < 400 && !why.contains('\u{1b}'), "{why}");
}
