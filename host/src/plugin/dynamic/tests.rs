#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::json;

use super::told::{TOOLS_MAX, Written, check};
use super::*;

fn tool(name: &str, schema: impl ToString) -> Written {
    Written {
        name: name.to_owned(),
        description: "Does it.".to_owned(),
        input_schema: schema.to_string(),
        output_schema: None,
    }
}

fn refused(tools: Vec<Written>) -> String {
    check(tools).unwrap_err()
}

/// Why a schema is refused.
fn refused_schema(schema: impl ToString) -> String {
    refused(vec![tool("t", schema)])
}

#[test]
fn what_is_sound_is_taken() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"id": {"$ref": "#/$defs/id"}, "$ref": {"type": "string", "pattern": "^a+$"}},
        "$defs": {"id": {"type": "string"}},
    });
    let mut told = tool("Soup_of-the-day", &schema);
    told.description = format!("  Soup\u{1b}[2J{}", "x".repeat(10_000));
    told.output_schema = Some("{\"type\": \"string\"}".to_owned());
    let taken = serde_json::to_value(check(vec![told]).unwrap()).unwrap();
    assert_eq!(taken[0]["input_schema"], schema);
    let description = taken[0]["description"].as_str().unwrap();
    assert!(description.starts_with("Soup[2Jx"), "control characters are dropped");
    assert_eq!(description.chars().count(), 8_192, "and a long text is cut");
    assert_eq!(check(Vec::new()).unwrap(), []);
}

#[test]
fn names_are_refused_that_no_model_may_be_shown_or_that_are_alike() {
    let object = json!({"type": "object"});
    for name in ["", "a b", "1st", "a#b", "a/b", "\u{1b}[2J", &"x".repeat(65)] {
        assert!(
            refused(vec![tool(name, &object)]).contains("cannot be the name"),
            "{name:?}"
        );
    }
    for (one, other) in [("a", "a"), ("get-it", "get_it"), ("Get", "get")] {
        let why = refused(vec![tool(one, &object), tool(other, &object)]);
        assert!(why.contains("one name"), "{why}");
    }
    let many = (0..=TOOLS_MAX).map(|at| tool(&format!("t{at}"), &object));
    assert!(refused(many.collect()).contains("at most 256"));
}

#[test]
fn schemas_are_refused_that_lead_out_or_turn_in_circles() {
    let property = |schema: serde_json::Value| json!({"type": "object", "properties": {"a": schema}});
    for outside in [
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "other.json#/a",
        "#anchor",
        "#/%24defs/a",
    ] {
        let why = refused_schema(property(json!({"$ref": outside})));
        assert!(why.contains(outside) && why.contains("no part of it"), "{why}");
    }
    assert!(refused_schema(property(json!({"$ref": "#/$defs/none"}))).contains("not there"));
    let circle = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
    assert!(refused_schema(circle).contains("circle"));
    let growing: serde_json::Map<_, _> = (0..8)
        .map(|at| {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            (format!("d{at}"), json!({"allOf": vec![next; 5]}))
        })
        .chain([("d8".to_owned(), json!({}))])
        .collect();
    let bomb = json!({"type": "object", "$ref": "#/$defs/d0", "$defs": growing});
    let why = refused_schema(bomb);
    assert!(why.contains("more than 8192 parts"), "{why}");
    assert!(refused_schema(property(json!({"$id": "http://a/", "$ref": "#/b"}))).contains("`$id`"));
    assert!(
        refused_schema(property(json!({"$schema": "http://json-schema.org/draft-04/schema#"}))).contains("dialect")
    );
}

#[test]
fn schemas_are_refused_that_are_none_or_too_much() {
    assert!(refused_schema("{").contains("no JSON"));
    assert!(refused_schema(json!({"type": "string"})).contains("\"object\""));
    assert!(refused_schema(json!(true)).contains("\"object\""));
    assert!(refused_schema(json!({"type": "object", "properties": 1})).contains("not valid"));
    let deep = format!("{}{{}}{}", "{\"type\":\"object\",\"not\":".repeat(60), "}".repeat(60));
    assert!(refused_schema(deep).contains("deeper than 32"));
    let bottomless = "[".repeat(50_000);
    assert!(refused_schema(bottomless).contains("no JSON"));
    let long = json!({"type": "object", "title": "x".repeat(70_000)});
    assert!(refused_schema(long).contains("at most 65536"));
    // A pattern that backtracks, and one that grows.
    for pattern in ["(?=a)b", "(\\w{1000}){1000}"] {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
        assert!(refused_schema(schema).contains("not valid"), "{pattern}");
    }
    let patterns: serde_json::Map<_, _> = (0..65).map(|at| (format!("^{at}$"), json!({}))).collect();
    assert!(refused_schema(json!({"type": "object", "patternProperties": patterns})).contains("64 patterns"));
    let mut output = tool("t", json!({"type": "object"}));
    output.output_schema = Some("{\"$ref\": \"http://a\"}".to_owned());
    assert!(refused(vec![output]).contains("its output schema refers to"));
}

#[test]
fn the_interface_is_known_by_its_version() {
    assert!(is_interface("toolwit:plugin/dynamic@0.1.0"));
    for other in [
        "toolwit:plugin/dynamic",
        "toolwit:plugin/dynamic@0.2.0",
        "toolwit:plugin/tools@0.1.0",
        "a:b/dynamic@0.1.0",
    ] {
        assert!(!is_interface(other), "{other}");
    }
}
