//! Descriptions of JSON Schemas, as text for people.

use serde_json::{Map, Value};

use crate::output::page::{FAINT, NAME, Page};

/// Maximum nesting depth of a description. Deeper types are written as `…`, and deeper properties are omitted.
const DEPTH_MAX: usize = 8;

/// Maximum number of property names in the description of an object type.
const PROPERTY_NAMES_MAX: usize = 6;

/// Describes the values of a property. Omits `or null` for an optional property.
pub(crate) fn describe_property(schema: &Value, is_required: bool) -> String {
    let description = describe(schema);
    match description.strip_suffix(" or null") {
        Some(without_null) if !is_required => without_null.to_owned(),
        _ => description,
    }
}

/// Describes the values that a schema allows, such as `array of string`, `integer (0 to 255)` or `"gold" or "silver"`.
pub(crate) fn describe(schema: &Value) -> String {
    describe_at_depth(schema, 0)
}

fn describe_at_depth(schema: &Value, depth: usize) -> String {
    let Some(keywords) = schema.as_object() else {
        return "anything".to_owned();
    };
    if depth >= DEPTH_MAX {
        return "…".to_owned();
    }
    let describe_nested = |schema: &Value| describe_at_depth(schema, depth + 1);
    if let Some(constant) = keywords.get("const") {
        return constant.to_string();
    }
    if let Some(Value::Array(constants)) = keywords.get("enum") {
        return join_choices(constants.iter().map(Value::to_string));
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(Value::Array(choices)) = keywords.get(key) {
            let is_number = choices.first().is_some_and(|first| first["type"] == "number");
            if is_number {
                // Omits the `enum` of NaN and the infinities, which are strings in JSON.
                return join_choices(
                    choices
                        .iter()
                        .filter(|choice| choice.get("enum").is_none())
                        .map(describe_nested),
                );
            }
            return join_choices(choices.iter().map(describe_nested));
        }
    }
    match keywords.get("type") {
        Some(Value::String(name)) => describe_type(name, keywords, depth),
        Some(Value::Array(names)) if keywords.contains_key("pattern") && names.iter().any(|name| name == "integer") => {
            "integer, or a string of digits".to_owned()
        }
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            join_choices(names.map(|name| describe_type(name, keywords, depth)))
        }
        _ => "anything".to_owned(),
    }
}

/// Describes the values of one type of a schema. `name` is the name of the type in JSON Schema, such as `integer`.
fn describe_type(name: &str, keywords: &Map<String, Value>, depth: usize) -> String {
    let describe_nested = |schema: &Value| describe_at_depth(schema, depth + 1);
    match name {
        "integer" => match (keywords.get("minimum"), keywords.get("maximum")) {
            (Some(minimum), Some(maximum)) => format!("integer ({minimum} to {maximum})"),
            _ => "integer".to_owned(),
        },
        "string" if keywords.contains_key("contentEncoding") => "string (base64)".to_owned(),
        "string" if keywords.get("maxLength") == Some(&Value::from(1)) => "string of one character".to_owned(),
        "array" => match (keywords.get("prefixItems"), keywords.get("items")) {
            (Some(Value::Array(items)), _) => {
                format!("[{}]", items.iter().map(describe_nested).collect::<Vec<_>>().join(", "))
            }
            (_, Some(items)) => match describe_nested(items) {
                choices if choices.contains(" or ") => format!("array of ({choices})"),
                item => format!("array of {item}"),
            },
            _ => "array".to_owned(),
        },
        "object" => match (entity_type_name(keywords), case_with_payload(keywords)) {
            (Some(entity_type), _) => format!("entity `{entity_type}`"),
            (None, Some((name, payload))) => format!("{{{name}: {}}}", describe_nested(payload)),
            (None, None) => describe_object(keywords),
        },
        _ => name.to_owned(),
    }
}

/// Describes an object by its property names, as in `{amount, currency}`, or as `object` if the schema names no properties.
fn describe_object(keywords: &Map<String, Value>) -> String {
    let names: Vec<_> = match keywords.get("properties").and_then(Value::as_object) {
        Some(properties) if !properties.is_empty() => properties.keys().map(String::as_str).collect(),
        _ => return "object".to_owned(),
    };
    let first_names = names[..names.len().min(PROPERTY_NAMES_MAX)].join(", ");
    let more = if names.len() > PROPERTY_NAMES_MAX { ", …" } else { "" };
    format!("{{{first_names}{more}}}")
}

fn join_choices(choices: impl Iterator<Item = String>) -> String {
    choices.collect::<Vec<_>>().join(" or ")
}

/// Returns the name of the entity type, if the values of a schema represent an entity: `customer` for the objects
/// `{"type": "customer", "id": …, "available_tools": …}`.
fn entity_type_name(keywords: &Map<String, Value>) -> Option<&str> {
    let properties = keywords.get("properties")?;
    properties.get("available_tools")?;
    properties.get("type")?.get("const")?.as_str()
}

/// Returns the only property of an object schema, if the property is required. A case of a WIT variant with a payload has
/// such a schema: the property has the name of the case, and its value is the payload.
fn case_with_payload(keywords: &Map<String, Value>) -> Option<(&String, &Value)> {
    let properties = keywords.get("properties")?.as_object()?;
    let required = keywords.get("required")?.as_array()?;
    let is_case = properties.len() == 1 && required.len() == 1;
    properties.iter().next().filter(|_| is_case)
}

/// Adds the names of the entity types that values of a schema can contain. Adds each name once.
pub(crate) fn collect_entity_types<'a>(schema: &'a Value, names: &mut Vec<&'a str>) {
    match schema {
        Value::Object(keywords) => match entity_type_name(keywords) {
            Some(name) if names.contains(&name) => {}
            Some(name) => names.push(name),
            None => keywords.values().for_each(|value| collect_entity_types(value, names)),
        },
        Value::Array(values) => values.iter().for_each(|value| collect_entity_types(value, names)),
        _ => {}
    }
}

/// Writes the properties of an object with their types and descriptions. Nested properties are indented.
pub(crate) fn write_properties(page: &mut Page, schema: &Value, indent: usize) {
    write_properties_at(page, schema, indent, 0);
}

fn write_properties_at(page: &mut Page, schema: &Value, indent: usize, depth: usize) {
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    if depth >= DEPTH_MAX {
        return;
    }
    let required_names = schema["required"].as_array();
    for (name, property) in properties {
        let is_required = required_names.is_some_and(|names| names.iter().any(|required| required == name));
        page.spaces(indent)
            .styled(NAME, name)
            .text(": ")
            .text(describe_property(property, is_required));
        if !is_required {
            page.styled(FAINT, ", optional");
        }
        page.end();
        write_descriptions(page, property, indent + 4);
        if let Some(object) = object_within(property) {
            write_properties_at(page, object, indent + 4, depth + 1);
        }
    }
}

/// Writes the description in a schema and those of its named cases. Without a description in the schema itself, also
/// writes those of its unnamed alternatives and of its array items.
pub(crate) fn write_descriptions(page: &mut Page, schema: &Value, indent: usize) {
    let write_description = |page: &mut Page, schema: &Value| {
        let text = schema["description"].as_str();
        text.is_some_and(|text| {
            page.block(indent, FAINT, text);
            true
        })
    };
    let has_description = write_description(page, schema);
    for cases in ["anyOf", "oneOf"].iter().filter_map(|key| schema[key].as_array()) {
        for case in cases {
            match (
                case["const"].as_str().or_else(|| case_name(case)),
                case["description"].as_str(),
            ) {
                (Some(name), Some(text)) => {
                    page.block(indent, FAINT, &format!("`{name}`: {text}"));
                }
                (None, Some(_)) if !has_description => {
                    write_description(page, case);
                }
                _ => {}
            }
        }
    }
    if !has_description {
        write_description(page, &schema["items"]);
    }
}

fn case_name(schema: &Value) -> Option<&str> {
    case_with_payload(schema.as_object()?).map(|(name, _)| name.as_str())
}

/// Returns the schema whose properties describe the values of a schema: the schema itself, or that of its first
/// alternative or of its array items. `None` for an entity, a case with a payload, and values without properties.
pub(crate) fn object_within(schema: &Value) -> Option<&Value> {
    let keywords = schema.as_object()?;
    if entity_type_name(keywords).is_some() || case_with_payload(keywords).is_some() {
        return None;
    }
    if keywords.contains_key("properties") {
        return Some(schema);
    }
    let choices = keywords.get("anyOf").and_then(Value::as_array);
    let inner = choices
        .and_then(|choices| choices.first())
        .or_else(|| keywords.get("items"))?;
    object_within(inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_each_type_are_described() {
        let cases = [
            (
                json!({"type": "integer", "minimum": 0, "maximum": 255}),
                "integer (0 to 255)",
            ),
            (
                json!({"type": ["integer", "string"], "pattern": "^[0-9]+$"}),
                "integer, or a string of digits",
            ),
            (json!({"type": ["string", "null"]}), "string or null"),
            (json!({"anyOf": [{"type": "number"}, {"enum": ["NaN"]}]}), "number"),
            (json!({"type": "string", "enum": ["a", "b"]}), "\"a\" or \"b\""),
            (
                json!({"type": "string", "contentEncoding": "base64"}),
                "string (base64)",
            ),
            (
                json!({"type": "array", "items": {"type": ["string", "null"]}}),
                "array of (string or null)",
            ),
            (
                json!({"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "string"}]}),
                "[boolean, string]",
            ),
            (
                json!({"oneOf": [{"const": "empty"}, {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}]}),
                "\"empty\" or {at: string}",
            ),
            (json!({"properties": {}, "type": "object"}), "object"),
            (json!({"properties": {"a": {}, "b": {}}, "type": "object"}), "{a, b}"),
            (json!(true), "anything"),
        ];
        for (schema, expected) in cases {
            assert_eq!(describe(&schema), expected, "{schema}");
        }
    }

    // attack: A13
    #[test]
    fn deep_type_is_cut() {
        let deep = (0..200).fold(
            json!({"type": "string"}),
            |inner, _| json!({"type": "array", "items": inner}),
        );
        assert!(describe(&deep).ends_with("array of …"), "{}", describe(&deep));
    }
}
