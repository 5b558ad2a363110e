//! OpenAI's strict mode, in which the arguments of a call always satisfy the schema.

use serde_json::{Map, Value, json};

/// The maximum nesting depth that the provider accepts.
pub(super) const STRICT_SCHEMA_DEPTH: usize = 10;

/// Keywords that strict mode accepts. They are copied unchanged.
const KEPT_KEYWORDS: &[&str] = &[
    "$ref",
    "const",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "title",
    "type",
];

/// Keywords that strict mode refuses and that only restrict or describe a value. Without them, the schema still accepts all
/// values that it accepted before. `format` is dropped only if its value is not one of [`ACCEPTED_FORMATS`].
const DROPPED_KEYWORDS: &[&str] = &[
    "$comment",
    "$id",
    "$schema",
    "contentEncoding",
    "contentMediaType",
    "default",
    "deprecated",
    "examples",
    "format",
    "maxLength",
    "maxProperties",
    "minLength",
    "minProperties",
    "readOnly",
    "uniqueItems",
    "writeOnly",
];

/// Formats that strict mode accepts.
const ACCEPTED_FORMATS: &[&str] = &[
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "uuid",
];

/// Converts the schema of a tool to strict mode, in which every object lists all its properties as required: optional
/// properties become nullable.
///
/// Returns `None` for a schema that is too deep, or that strict mode cannot express, such as an object without a list of
/// properties or with a schema for additional ones. An object schema without `additionalProperties` accepts no additional
/// properties after the conversion.
pub(crate) fn strict_schema(schema: &Value) -> Option<Value> {
    let root = schema.as_object()?;
    let is_object = root.get("type").is_some_and(|type_name| type_name == "object");
    if !is_object || root.contains_key("anyOf") || root.contains_key("oneOf") {
        return None;
    }
    convert(schema, 0)
}

/// Converts a schema at a nesting depth. Returns `None` if it is too deep, or if strict mode cannot express it.
fn convert(schema: &Value, depth: usize) -> Option<Value> {
    let keywords = schema.as_object().filter(|_| depth <= STRICT_SCHEMA_DEPTH)?;
    let mut converted = Map::new();
    for (keyword, value) in keywords {
        let (keyword, value) = match keyword.as_str() {
            "properties" => ("properties", convert_properties(keywords, value, depth)?),
            "required" => continue,
            "additionalProperties" if *value == json!(false) => continue,
            "items" => ("items", convert(value, depth + 1)?),
            "anyOf" | "oneOf" => ("anyOf", convert_each(value, depth)?),
            "$defs" => ("$defs", convert_definitions(value, depth)?),
            "format" if ACCEPTED_FORMATS.iter().any(|format| value == format) => ("format", value.clone()),
            keyword if KEPT_KEYWORDS.contains(&keyword) => (keyword, value.clone()),
            keyword if DROPPED_KEYWORDS.contains(&keyword) => continue,
            _ => return None,
        };
        converted.insert(keyword.to_owned(), value);
    }
    if has_type(keywords, "object") {
        let names: Vec<_> = converted.get("properties")?.as_object()?.keys().cloned().collect();
        converted.insert("required".to_owned(), json!(names));
        converted.insert("additionalProperties".to_owned(), json!(false));
    }
    let accepts_any_items = has_type(keywords, "array") && !keywords.contains_key("items");
    let is_typed = ["type", "anyOf", "oneOf", "$ref", "enum", "const"]
        .iter()
        .any(|keyword| keywords.contains_key(*keyword));
    (is_typed && !accepts_any_items).then_some(Value::Object(converted))
}

/// Converts the schemas of properties. Optional ones become nullable.
fn convert_properties(keywords: &Map<String, Value>, properties: &Value, depth: usize) -> Option<Value> {
    let mut converted = Map::new();
    for (name, schema) in properties.as_object()? {
        let value = convert(schema, depth + 1)?;
        let value = if is_required(keywords, name) {
            value
        } else {
            nullable(value)
        };
        converted.insert(name.clone(), value);
    }
    Some(Value::Object(converted))
}

fn convert_each(schemas: &Value, depth: usize) -> Option<Value> {
    let schemas = schemas.as_array()?.iter();
    schemas.map(|schema| convert(schema, depth + 1)).collect()
}

fn convert_definitions(definitions: &Value, depth: usize) -> Option<Value> {
    let definitions = definitions.as_object()?.iter();
    let converted = definitions.map(|(name, schema)| Some((name.clone(), convert(schema, depth)?)));
    Some(Value::Object(converted.collect::<Option<_>>()?))
}

/// Returns a schema that additionally accepts `null`.
fn nullable(schema: Value) -> Value {
    if allows_null(&schema) {
        return schema;
    }
    match (
        schema.get("type"),
        schema.get("enum").is_some() || schema.get("const").is_some(),
    ) {
        (Some(Value::String(type_name)), false) => {
            let type_names = json!([type_name, "null"]);
            with_type(schema, type_names)
        }
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

fn with_type(mut schema: Value, type_names: Value) -> Value {
    schema["type"] = type_names;
    schema
}

/// Returns whether a schema accepts `null`. References are not followed.
pub(super) fn allows_null(schema: &Value) -> bool {
    let has_null_alternative = |keyword: &str| {
        let schemas = schema.get(keyword).and_then(Value::as_array);
        schemas.is_some_and(|schemas| schemas.iter().any(allows_null))
    };
    let has_null_value = |keyword: &str| {
        let values = schema.get(keyword).and_then(Value::as_array);
        values.is_some_and(|values| values.contains(&Value::Null))
    };
    schema.as_object().is_some_and(|keywords| has_type(keywords, "null"))
        || has_null_alternative("anyOf")
        || has_null_alternative("oneOf")
        || has_null_value("enum")
        || schema.get("const").is_some_and(Value::is_null)
}

pub(super) fn has_type(keywords: &Map<String, Value>, name: &str) -> bool {
    match keywords.get("type") {
        Some(Value::String(type_name)) => type_name == name,
        Some(Value::Array(type_names)) => type_names.iter().any(|type_name| type_name == name),
        _ => false,
    }
}

pub(super) fn is_required(keywords: &Map<String, Value>, name: &str) -> bool {
    let required = keywords.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::schema::without_added_nulls;

    #[test]
    fn optional_properties_become_nullable_and_added_nulls_are_removed() {
        let schema = json!({
            "type": "object",
            "properties": {
                "b": {"type": "string", "minLength": 1},
                "a": {"type": "integer", "default": 3},
                "kind": {"enum": ["x", "y"]},
                "maybe": {"type": ["string", "null"]},
                "inner": {"type": "object", "properties": {"n": {"type": "number"}}},
            },
            "required": ["b"],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "b": {"type": "string"},
                "a": {"type": ["integer", "null"]},
                "kind": {"anyOf": [{"enum": ["x", "y"]}, {"type": "null"}]},
                "maybe": {"type": ["string", "null"]},
                "inner": {
                    "type": ["object", "null"],
                    "properties": {"n": {"type": ["number", "null"]}},
                    "required": ["n"],
                    "additionalProperties": false,
                },
            },
            "required": ["b", "a", "kind", "maybe", "inner"],
            "additionalProperties": false,
        });
        assert_eq!(strict_schema(&schema).unwrap().to_string(), expected.to_string());
        let restore = |arguments: &str| without_added_nulls(&schema, arguments);
        assert_eq!(
            restore(r#"{"b":"null","a":null,"kind":null,"maybe":null,"inner":{"n":null}}"#).unwrap(),
            r#"{"b":"null","maybe":null,"inner":{}}"#
        );
        assert_eq!(restore(r#"{"b":"null"}"#), None);
        assert_eq!(restore(r#"{"b":null"#), None, "truncated arguments are unchanged");
    }

    #[test]
    fn a_schema_that_strict_mode_cannot_express_is_not_converted() {
        let property = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
        let inexpressible = [
            json!(true),
            json!({}),
            json!({"type": "object"}),
            json!({"type": "string"}),
            json!({"anyOf": [{"type": "object", "properties": {}}], "type": "object"}),
            json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
            property(json!({})),
            property(json!({"type": "object"})),
            property(json!({"type": "array"})),
            property(json!({"allOf": [{"type": "string"}]})),
            property(json!({"type": "string", "x-unknown": 1})),
        ];
        for schema in inexpressible {
            assert_eq!(strict_schema(&schema), None, "{schema}");
        }
        assert!(strict_schema(&json!({"type": "object", "properties": {}})).is_some());
    }
}
