#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::ToolId;

fn definition(schema: Value) -> ToolDefinition {
    ToolDefinition::new(ToolId::from_text("p#t"), "t", "", schema)
}

fn check(schema: Value, arguments: &Value) -> Result<Arguments, ToolError> {
    let validator = InputValidator::of(&definition(schema)).unwrap();
    validator.check(arguments.as_object().unwrap().clone())
}

fn message(schema: Value, arguments: &Value) -> String {
    check(schema, arguments).unwrap_err().report().message.clone()
}

#[test]
fn the_first_violations_are_reported_with_their_paths() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"items": {"type": "string"}}, "b": {"maximum": 3}},
        "required": ["c"],
    });
    let text = message(schema.clone(), &json!({"a": [1], "b": 4}));
    for violation in [
        "/a/0: 1 is not of type \"string\"",
        "/b: 4 is greater than",
        "\"c\" is a required property",
    ] {
        assert!(text.contains(violation), "{text}");
    }
    assert_eq!(text.matches("; ").count(), 2, "{text}");
    let many = message(schema.clone(), &json!({"a": vec![1; 1_000], "c": 0}));
    assert!(
        many.starts_with("/a/0: 1 is not"),
        "the first of many violations is reported: {many}"
    );
    let long = message(schema, &json!({"a": [{"x": "é".repeat(10_000)}], "c": 0}));
    assert!((400..700).contains(&long.len()), "a quoted value is cut: {long}");
}

#[test]
fn a_violation_of_alternatives_says_what_each_of_them_needs() {
    let schema = json!({
        "type": "object",
        "properties": {"by": {"oneOf": [{"required": ["id"]}, {"required": ["name"]}]}},
    });
    check(schema.clone(), &json!({"by": {"name": "ann"}})).unwrap();
    let text = message(schema, &json!({"by": {"mail": "x".repeat(10_000)}}));
    assert_eq!(
        text,
        "/by: none of the 2 alternatives matches: \"id\" is a required property, or \"name\" is a required property"
    );
}

#[test]
fn the_passes_of_a_check_share_one_budget_of_steps() {
    let schema = json!({"type": "object", "properties": {"a": {"items": {"type": "string"}}}});
    let validator = InputValidator::of(&definition(schema)).unwrap();
    let value = json!({"a": vec![1; 10_000]});
    let mut budget = validator.budget(u64::MAX, 0);
    assert_eq!(
        budget.run(|| validator.validator.is_valid(MeteredValue(&value))),
        Some(false)
    );
    assert!(budget.steps < VALIDATION_STEPS_MAX, "a pass takes steps");
    let text = validator.violations(&value, budget.steps);
    assert!(text.starts_with("/a/0: 1 is not"), "{text}");
    let text = validator.violations(&value, 1_000);
    assert!(
        text.starts_with("/a/0: 1 is not"),
        "the first violation takes few steps: {text}"
    );
    let text = validator.violations(&value, 0);
    assert!(text.contains("takes too many steps"), "{text}");
}

#[test]
fn the_longest_ordinary_arguments_are_within_the_budget() {
    let point = json!({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": false});
    let schema = json!({
        "type": "object",
        "properties": {
            "numbers": {"type": "array", "items": {"type": "integer", "minimum": 0}},
            "points": {"type": "array", "items": {"$ref": "#/$defs/point"}},
            "text": {"type": "string", "pattern": "^[a-z ]*$"},
        },
        "$defs": {"point": point},
    });
    for arguments in [
        json!({"numbers": vec![1; 2_000_000]}),
        json!({"points": vec![json!({"x": 1}); 500_000]}),
        json!({"text": "a b ".repeat(1_000_000)}),
    ] {
        check(schema.clone(), &arguments).unwrap();
    }
}

#[test]
fn a_recursive_schema_of_a_native_tool_is_accepted() {
    let tree =
        json!({"type": "object", "properties": {"children": {"items": {"$ref": "#"}}, "size": {"type": "integer"}}});
    check(tree.clone(), &json!({"children": [{"children": [{"size": 1}]}]})).unwrap();
    let text = message(tree, &json!({"children": [{"children": [{"size": "1"}]}]}));
    assert!(text.contains("/children/0/children/0/size"), "{text}");
}

#[test]
fn a_pattern_with_lookaround_is_checked_for_trusted_schemas_only() {
    let schema = json!({"type": "object", "properties": {"a": {"pattern": "^(?!x)", "type": "string"}}});
    check(schema.clone(), &json!({"a": "y"})).unwrap();
    check(schema.clone(), &json!({"a": "x"})).unwrap_err();
    check_untrusted(schema.clone(), &json!({"a": "x"})).unwrap();
    check_untrusted(schema, &json!({"a": 1})).unwrap_err();
}

fn check_untrusted(schema: Value, arguments: &Value) -> Result<Arguments, ToolError> {
    let validator = InputValidator::of_untrusted(&definition(schema)).unwrap();
    validator.check(arguments.as_object().unwrap().clone())
}

#[test]
fn a_recursive_schema_of_a_server_is_checked_at_its_first_level() {
    let node = json!({"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}, "required": ["name"]});
    let schema = json!({"type": "object", "$defs": {"node": node}, "properties": {"root": {"$ref": "#/$defs/node"}}});
    let valid = json!({"root": {"name": "a", "next": {"name": "b"}}});
    check_untrusted(schema.clone(), &valid).unwrap();
    check_untrusted(schema.clone(), &json!({"root": {"next": {}}})).unwrap_err();
    check_untrusted(schema, &json!({"root": {"name": "a", "next": {}}})).unwrap();
    let root = json!({"type": "object", "properties": {"reply": {"$ref": "#"}, "n": {"type": "integer"}}, "allOf": [{"$ref": "#"}]});
    check_untrusted(root.clone(), &json!({"reply": {"n": 1}, "n": 2})).unwrap();
    check_untrusted(root, &json!({"n": "2"})).unwrap_err();
}

#[test]
fn a_keyword_that_is_left_out_never_makes_a_schema_accept_less() {
    let lookahead = json!({"pattern": "^(?=a)"});
    let node =
        json!({"oneOf": [{"type": "array", "items": {"$ref": "#/$defs/node"}}, {"type": "array", "maxItems": 1}]});
    for (property, value) in [
        (json!({"not": lookahead}), json!("b")),
        (json!({"not": {"$ref": "#/$defs/lookahead"}}), json!("b")),
        (json!({"oneOf": [lookahead, {"maxLength": 1}]}), json!("b")),
        (
            json!({"oneOf": [{"$ref": "#/$defs/lookahead"}, {"maxLength": 1}]}),
            json!("b"),
        ),
        (json!({"if": lookahead, "then": {"maxLength": 1}}), json!("long")),
        (
            json!({"contains": lookahead, "minContains": 0, "maxContains": 1}),
            json!(["b", "c"]),
        ),
        (
            json!({"patternProperties": {"^(?!x)": {}}, "additionalProperties": false}),
            json!({"a": 1}),
        ),
        (
            json!({"properties": null, "additionalProperties": false}),
            json!({"a": 1}),
        ),
        (json!({"$ref": "#/$defs/node"}), json!([[1, 2]])),
        (json!({"unevaluatedProperties": false}), json!({"a": 1})),
    ] {
        let schema = json!({
            "type": "object", "properties": {"a": property.clone()}, "$defs": {"lookahead": lookahead, "node": node},
        });
        let outcome = check_untrusted(schema, &json!({"a": value}));
        assert!(outcome.is_ok(), "{property}: {outcome:?}");
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        prop_oneof![Just(1.0), Just(0.5), Just(-2.0)].prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-c]{1,2}", inner, 0..4)
                .prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

fn any_schema() -> impl Strategy<Value = Value> {
    let types = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        proptest::sample::select(types.to_vec()).prop_map(|name| json!({"type": name})),
        any_value().prop_map(|value| json!({"const": value})),
        proptest::collection::vec(any_value(), 1..4).prop_map(|values| json!({"enum": values})),
        "[a-c]{1,2}[+*]?".prop_map(|pattern| json!({"pattern": pattern})),
        (0_u8..4).prop_map(|count| json!({"minLength": count, "maxItems": count, "minProperties": count})),
        (-2_i8..3).prop_map(|number| json!({"minimum": number, "multipleOf": 0.5})),
        Just(json!({"uniqueItems": true})),
        "[a-c]".prop_map(|name| json!({"required": [name]})),
    ];
    leaf.prop_recursive(4, 32, 3, |inner| {
        let list = proptest::collection::vec(inner.clone(), 1..4);
        let three = (inner.clone(), inner.clone(), inner.clone());
        prop_oneof![
            (proptest::sample::select(vec!["allOf", "anyOf", "oneOf"]), list.clone())
                .prop_map(|(key, schemas)| json!({key: schemas})),
            inner.clone().prop_map(|schema| json!({"not": schema})),
            three.prop_map(|(one, two, three)| json!({"if": one, "then": two, "else": three})),
            (list, inner.clone()).prop_map(|(prefix, items)| json!({"prefixItems": prefix, "items": items})),
            inner
                .clone()
                .prop_map(|schema| json!({"contains": schema, "maxContains": 2})),
            inner.clone().prop_map(|schema| json!({"propertyNames": schema})),
            (inner.clone(), inner.clone(), inner).prop_map(|(one, two, three)| json!({
                "properties": {"a": one},
                "patternProperties": {"^b": two},
                "additionalProperties": three,
            })),
        ]
    })
}

proptest! {
    // attack: E8
    #[test]
    fn counting_steps_does_not_change_the_outcome(schema in any_schema(), value in any_value()) {
        let schema = json!({"type": "object", "properties": {"a": schema}});
        let arguments = json!({"a": value});
        let expected = jsonschema::is_valid(&schema, &arguments);
        prop_assert_eq!(check(schema.clone(), &arguments).is_ok(), expected);
        if let Ok(schema) = crate::UntrustedSchemas::default().read(&schema.to_string()) {
            let validator = InputValidator::of_untrusted(&definition(schema)).unwrap();
            prop_assert_eq!(validator.check(arguments.as_object().unwrap().clone()).is_ok(), expected);
        }
    }

    #[test]
    fn a_small_budget_never_makes_valid_arguments_invalid(steps in 1_u64..30, value in any_value()) {
        let validator = InputValidator::of(&definition(json!({"type": "object", "additionalProperties": {"items": true}}))).unwrap();
        let arguments = json!({"a": [value, 1, 2, 3], "b": []});
        let mut budget = ValidationBudget { steps, ..validator.budget(u64::MAX, 0) };
        let outcome = budget.run(|| validator.validator.is_valid(MeteredValue(&arguments)));
        prop_assert!(outcome.is_none_or(|is_valid| is_valid));
    }
}
