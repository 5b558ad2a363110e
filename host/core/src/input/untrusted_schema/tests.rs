#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::{Arguments, InputValidator, ToolDefinition, ToolError, ToolId};

fn read(schema: &Value) -> Value {
    UntrustedSchemas::default().read(&schema.to_string()).unwrap()
}

/// Returns a schema with the property `a`.
fn property(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}})
}

fn check(schema: Value, arguments: &Value) -> Result<Arguments, ToolError> {
    let definition = ToolDefinition::new(ToolId::from_text("p#t"), "t", "", schema);
    let validator = InputValidator::of_untrusted(&definition).unwrap();
    validator.check(arguments.as_object().unwrap().clone())
}

#[test]
fn keywords_that_cannot_be_checked_are_left_out_and_the_others_are_checked() {
    for keyword in [
        json!({"pattern": "^(?!\\.)(?!.*\\.\\.)[a-z]+@[a-z]+$"}),
        json!({"pattern": "^(a|b)\\1$"}),
        json!({"pattern": "(\\w{1000}){1000}"}),
        json!({"pattern": 7}),
        json!({"title": null}),
        json!({"description": ["d"]}),
        json!({"minLength": "1"}),
        json!({"maxLength": -1}),
        json!({"required": true}),
        json!({"enum": []}),
        json!({"examples": "none"}),
        json!({"format": null}),
        json!({"allOf": []}),
        json!({"anyOf": {"type": "null"}}),
        json!({"$ref": "https://example.com/schema.json"}),
        json!({"$ref": "file:///etc/passwd"}),
        json!({"$ref": "#/$defs/none"}),
        json!({"$ref": "#anchor"}),
        json!({"$dynamicRef": "#node"}),
        json!({"$id": "x"}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#"}),
        json!({"unevaluatedProperties": false}),
    ] {
        let mut with_type = keyword.clone();
        with_type["type"] = json!("string");
        let schema = read(&property(&with_type));
        assert_eq!(schema["properties"]["a"], json!({"type": "string"}), "{keyword}");
        check(schema.clone(), &json!({"a": "any"})).unwrap();
        check(schema, &json!({"a": 1})).unwrap_err();
    }
    for value in [
        json!(null),
        json!("string"),
        json!([]),
        json!({"type": "any"}),
        json!({"type": ["string", 1]}),
    ] {
        check(read(&property(&value)), &json!({"a": 1})).unwrap();
    }
    let tree = json!({"propertyNames": {"pattern": "^(?!__)"}, "additionalProperties": {"type": "string"}});
    let schema = read(&property(&tree));
    check(schema.clone(), &json!({"a": {"__x": "text"}})).unwrap();
    check(schema, &json!({"a": {"__x": 1}})).unwrap_err();
}

#[test]
fn names_of_properties_and_data_are_not_keywords() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"id": {"const": {"title": null}}, "$ref": {"default": {"minLength": "x"}}, "pattern": {"type": "string"}},
        "x-order": {"title": null},
    });
    assert_eq!(read(&schema), schema);
}

#[test]
fn schemas_of_each_dialect_are_checked() {
    let exclusive = json!({"minimum": 0, "exclusiveMinimum": true});
    for dialect in ["draft-04", "draft-06", "draft-07"] {
        let mut schema = property(&exclusive);
        schema["$schema"] = json!(format!("http://json-schema.org/{dialect}/schema#"));
        schema["id"] = json!("http://example.com/");
        check(read(&schema), &json!({"a": 1})).unwrap();
        check(read(&schema), &json!({"a": 0})).unwrap_err();
    }
    let tuple = json!({"type": "array", "items": [{"type": "string"}], "additionalItems": false});
    for dialect in [
        "http://json-schema.org/draft-04/schema#",
        "https://example.com/mine",
        "http://json-schema.org/schema#",
    ] {
        let mut schema = property(&tuple);
        schema["$schema"] = json!(dialect);
        check(read(&schema), &json!({"a": ["x"]})).unwrap();
        check(read(&schema), &json!({"a": [1]})).unwrap_err();
        check(read(&schema), &json!({"a": ["x", "y"]})).unwrap_err();
    }
    let recursive = json!({
        "$schema": "https://json-schema.org/draft/2019-09/schema", "type": "object",
        "properties": {"next": {"$recursiveRef": "#"}, "n": {"type": "integer"}},
    });
    check(read(&recursive), &json!({"next": {"n": 1}})).unwrap();
}

#[test]
fn references_lead_to_definitions_under_any_keyword() {
    for (keyword, name, reference) in [
        ("$defs", "Item", "#/$defs/Item"),
        ("definitions", "Page<Item>", "#/definitions/Page%3CItem%3E"),
        ("components", "Item", "#/components/Item"),
    ] {
        let mut schema = property(&json!({"$ref": reference}));
        schema[keyword] = json!({name: {"type": "string", "title": null}});
        check(read(&schema), &json!({"a": "x"})).unwrap();
        check(read(&schema), &json!({"a": 1})).unwrap_err();
    }
    let named = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/Input",
        "definitions": {"Input": {"type": "object", "properties": {"a": {"type": "string"}}}},
    });
    let schema = read(&named);
    assert_eq!(schema["type"], "object");
    check(schema, &json!({"a": 1})).unwrap_err();
}

#[test]
fn a_recursive_or_deep_schema_is_kept() {
    let recursive = json!({
        "type": "object", "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
        "properties": {"root": {"$ref": "#/$defs/node"}, "self": {"$ref": "#"}},
    });
    assert_eq!(read(&recursive), recursive);
    let deep = (0..40).fold(json!({"type": "string"}), |schema, _| property(&schema));
    assert_eq!(read(&deep), deep);
    let valid = (0..40).fold(json!("text"), |value, _| json!({"a": value}));
    let invalid = (0..40).fold(json!(1), |value, _| json!({"a": value}));
    check(deep.clone(), &valid).unwrap();
    check(deep, &invalid).unwrap_err();
}

// attack: E8
#[test]
fn the_deepest_schemas_fit_on_the_stack() {
    let keywords: [fn(Value) -> Value; 5] = [
        |schema| json!({"not": schema}),
        |schema| json!({"items": schema}),
        |schema| json!({"additionalProperties": schema}),
        |schema| json!({"if": schema, "then": {}}),
        |schema| json!({"propertyNames": schema}),
    ];
    let arguments = (0..100).fold(json!({}), |value, _| json!({"a": value}));
    for add_level in keywords {
        let mut schema = (0..120).fold(json!({}), |schema, _| add_level(schema));
        schema["type"] = json!("object");
        let schema = read(&schema);
        // Whether the arguments are valid does not matter.
        let _ = check(schema, &arguments);
    }
}

// attack: E8
#[test]
fn a_schema_whose_references_multiply_is_checked_without_them() {
    let definitions: serde_json::Map<_, _> = (0..8)
        .map(|index| {
            let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
            (format!("d{index}"), json!({"allOf": vec![next; 5]}))
        })
        .chain([("d8".to_owned(), json!({"maxLength": 1}))])
        .collect();
    let bomb = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}, "b": {"type": "string"}}, "$defs": definitions});
    check(read(&bomb), &json!({"a": "long", "b": "x"})).unwrap();
    check(read(&bomb), &json!({"a": "long", "b": 1})).unwrap_err();
    let large = json!({"type": "object", "properties": {"a": {"enum": (0..9_000).collect::<Vec<_>>()}}});
    check(read(&large), &json!({"a": -1})).unwrap();
}

#[test]
fn schemas_that_are_too_large_are_refused() {
    let refusal = |text: &str| UntrustedSchemas::default().read(text).unwrap_err();
    assert!(refusal(&json!({"title": "x".repeat(70_000)}).to_string()).contains("at most 65536"));
    assert!(refusal("{").contains("not JSON"));
    assert!(refusal(&"[".repeat(50_000)).contains("not JSON"));
    let mut schemas = UntrustedSchemas::default();
    let schema = json!({"enum": vec![0; 8_000]}).to_string();
    let refused = (0..20).find_map(|_| schemas.read(&schema).err()).unwrap();
    assert!(refused.contains("all schemas together"), "{refused}");
}
