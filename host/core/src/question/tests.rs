//! Tests of forms: hostile texts, limits, schemas and answers.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use crate::Form;
use crate::limits::{FORM_FIELDS_MAX, FORM_MESSAGE_BYTES_MAX, FORM_TEXT_CHARS_MAX};

fn form(properties: Value) -> Result<Form, String> {
    Form::parse(
        "A question",
        &json!({"type": "object", "properties": properties}).to_string(),
    )
}

fn refusal(properties: Value) -> String {
    form(properties).unwrap_err()
}

#[test]
fn texts_of_a_form_have_no_invisible_characters_and_titles_have_one_line() {
    let schema = json!({
        "type": "object",
        "properties": {"color": {"type": "string", "title": "Co\u{202e}lor\nApproved by the host", "enum": ["re\u{200b}d"]}},
    });
    let form = Form::parse("\u{1b}[2JFirst line\u{2066}\nsecond line\u{e0041}", &schema.to_string()).unwrap();
    assert_eq!(form.message(), "[2JFirst line\nsecond line");
    assert_eq!(form.fields()[0].label(), "Color Approved by the host");
    assert_eq!(form.schema()["properties"]["color"]["enum"], json!(["red"]));
}

#[test]
fn a_form_that_is_too_large_is_refused() {
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {}}).to_string();
    assert!(Form::parse(&"x".repeat(FORM_MESSAGE_BYTES_MAX), &schema).is_ok());
    assert!(Form::parse(&"x".repeat(FORM_MESSAGE_BYTES_MAX + 1), &schema).is_err());
    assert!(Form::parse(" \u{200b} ", &schema).is_err(), "an empty message");
    let fields = |count: usize| (0..count).map(|index| (format!("f{index}"), text.clone())).collect();
    assert!(form(fields(FORM_FIELDS_MAX)).is_ok());
    assert!(refusal(fields(FORM_FIELDS_MAX + 1)).contains("at most 16 fields"));
    let titled = |chars: usize| json!({"a": {"type": "string", "title": "x".repeat(chars)}});
    assert!(form(titled(FORM_TEXT_CHARS_MAX)).is_ok());
    assert!(refusal(titled(FORM_TEXT_CHARS_MAX + 1)).contains("more than 120 characters"));
}

#[test]
fn a_form_that_asks_for_a_secret_is_refused() {
    for properties in [
        json!({"password": {"type": "string"}}),
        json!({"a": {"type": "string", "title": "API key"}}),
        json!({"a": {"type": "string", "description": "The token\u{200b} of your account"}}),
        json!({"pin": {"type": "integer"}}),
        json!({"pass\u{200b}word": {"type": "string"}}),
    ] {
        assert!(form(properties.clone()).is_err(), "{properties}");
    }
    let text = json!({"type": "object", "properties": {"answer": {"type": "string"}}}).to_string();
    assert!(Form::parse("Enter your pass\u{200b}word", &text).is_err());
    let choice = json!({"type": "object", "properties": {"sure": {"type": "boolean"}}}).to_string();
    assert!(
        Form::parse("Change the password policy?", &choice).is_ok(),
        "a form without a text cannot receive a password"
    );
    assert!(form(json!({"keep_token": {"type": "boolean"}})).is_ok());
}

#[test]
fn a_schema_that_a_form_cannot_show_is_refused_with_its_keyword() {
    for (property, part) in [
        (json!({"type": "object"}), "type must be"),
        (json!({"type": ["string", "null"]}), "type must be"),
        (json!({"type": "string", "pattern": "a"}), "`pattern`"),
        (json!({"type": "string", "format": "password"}), "`format`"),
        (json!({"type": "array", "items": {"type": "string"}}), "must be options"),
        (json!({"type": "string", "enum": []}), "`enum`"),
        (json!({"type": "string", "enum": ["a", "a"]}), "same value"),
        (json!({"type": "integer", "default": "x"}), "default"),
        (json!(true), "must be an object"),
    ] {
        let refusal = refusal(json!({ "a": property }));
        assert!(
            refusal.contains(part) && refusal.contains("`a`"),
            "{property}: {refusal}"
        );
    }
    for schema in [
        "",
        "[]",
        "{}",
        r#"{"type": "object", "$ref": "x"}"#,
        r#"{"type": "object", "type": "object"}"#,
    ] {
        assert!(Form::parse("A question", schema).is_err(), "{schema}");
    }
}

#[test]
fn an_answer_is_checked_against_each_field() {
    let properties = json!({
        "name": {"type": "string", "minLength": 2, "maxLength": 3},
        "mail": {"type": "string", "format": "email"},
        "day": {"type": "string", "format": "date"},
        "age": {"type": "integer", "minimum": 1, "maximum": 9},
        "share": {"type": "number"},
        "sure": {"type": "boolean"},
        "color": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g"}]},
        "sizes": {"type": "array", "items": {"type": "string", "enum": ["s", "m"]}, "minItems": 1},
    });
    let form = Form::parse(
        "A question",
        &json!({"type": "object", "properties": properties, "required": ["name"]}).to_string(),
    )
    .unwrap();
    let complete = json!({
        "name": "Ada", "mail": "a@b.c", "day": "2026-07-28", "age": 3, "share": 0.5, "sure": false, "color": "g", "sizes": ["m"],
    });
    assert_eq!(Value::Object(form.check(&complete).unwrap()), complete);
    assert!(form.check(&json!({"name": "Ad"})).is_ok());
    for wrong in [
        json!({}),
        json!({"name": "A"}),
        json!({"name": "Adam"}),
        json!({"name": 1}),
        json!({"name": "Ada", "mail": "a"}),
        json!({"name": "Ada", "day": "28.7.2026"}),
        json!({"name": "Ada", "age": 1.5}),
        json!({"name": "Ada", "age": 10}),
        json!({"name": "Ada", "sure": "yes"}),
        json!({"name": "Ada", "color": "Red"}),
        json!({"name": "Ada", "sizes": []}),
        json!({"name": "Ada", "sizes": ["s", "s"]}),
        json!({"name": "Ada", "more": 1}),
        json!(["Ada"]),
    ] {
        assert!(form.check(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_schema_of_a_form_has_the_keywords_of_its_fields() {
    let properties = json!({
        "name": {"type": "string", "minLength": 1, "title": "Name", "default": "Ada"},
        "age": {"type": "integer", "minimum": 1},
        "color": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}]},
        "legacy": {"type": "string", "enum": ["a"], "enumNames": ["A"]},
        "sizes": {"type": "array", "items": {"anyOf": [{"const": "s", "title": "Small"}]}, "maxItems": 2},
    });
    let schema = json!({"type": "object", "properties": properties, "required": ["age"]});
    assert_eq!(Form::parse("A question", &schema.to_string()).unwrap().schema(), schema);
}
