//! JSON Schema as text.

use serde_json::{Map, Value};

use crate::output::page::{FAINT, NAME, Page};

/// Maximum nesting depth that is written. Deeper types are written as `…`, and deeper properties are omitted.
const DEPTH_MAX: usize = 8;

/// Maximum number of property names in the description of an object type.
const FIELDS_MAX: usize = 6;

/// Describes the values of a property. `or null` is omitted for an optional property.
pub(crate) fn phrase_of_property(schema: &Value, is_required: bool) -> String {
    let phrase = phrase(schema);
    match phrase.strip_suffix(" or null") {
        Some(non_null_phrase) if !is_required => non_null_phrase.to_owned(),
        _ => phrase,
    }
}

/// Describes the values that a schema allows: `array of string`, `integer (0 to 255)`, `"gold" or "silver"`.
pub(crate) fn phrase(schema: &Value) -> String {
    phrase_within(schema, 0)
}

fn phrase_within(schema: &Value, depth: usize) -> String {
    let Some(fields) = schema.as_object() else {
        return "anything".to_owned();
    };
    if depth >= DEPTH_MAX {
        return "…".to_owned();
    }
    let nested_phrase = |schema: &Value| phrase_within(schema, depth + 1);
    if let Some(constant) = fields.get("const") {
        return constant.to_string();
    }
    if let Some(Value::Array(names)) = fields.get("enum") {
        return join_choices(names.iter().map(Value::to_string));
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(Value::Array(choices)) = fields.get(key) {
            let is_number = choices.first().is_some_and(|first| first["type"] == "number");
            if is_number {
                // Omits NaN and infinities, which are strings in JSON.
                return join_choices(
                    choices
                        .iter()
                        .filter(|choice| choice.get("enum").is_none())
                        .map(nested_phrase),
                );
            }
            return join_choices(choices.iter().map(nested_phrase));
        }
    }
    match fields.get("type") {
        Some(Value::String(name)) => phrase_of_type(name, fields, depth),
        Some(Value::Array(names)) if fields.contains_key("pattern") && names.iter().any(|name| name == "integer") => {
            "integer, or a string of digits".to_owned()
        }
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            join_choices(names.map(|name| phrase_of_type(name, fields, depth)))
        }
        _ => "anything".to_owned(),
    }
}

fn phrase_of_type(name: &str, fields: &Map<String, Value>, depth: usize) -> String {
    let nested_phrase = |schema: &Value| phrase_within(schema, depth + 1);
    match name {
        "integer" => match (fields.get("minimum"), fields.get("maximum")) {
            (Some(minimum), Some(maximum)) => format!("integer ({minimum} to {maximum})"),
            _ => "integer".to_owned(),
        },
        "string" if fields.contains_key("contentEncoding") => "string (base64)".to_owned(),
        "string" if fields.get("maxLength") == Some(&Value::from(1)) => "string of one character".to_owned(),
        "array" => match (fields.get("prefixItems"), fields.get("items")) {
            (Some(Value::Array(items)), _) => {
                format!("[{}]", items.iter().map(nested_phrase).collect::<Vec<_>>().join(", "))
            }
            (_, Some(items)) => match nested_phrase(items) {
                choice if choice.contains(" or ") => format!("array of ({choice})"),
                item => format!("array of {item}"),
            },
            _ => "array".to_owned(),
        },
        "object" => match (entity_type_name(fields), single_property(fields)) {
            (Some(entity_type), _) => format!("entity `{entity_type}`"),
            (None, Some((name, payload))) => format!("{{{name}: {}}}", nested_phrase(payload)),
            (None, None) => field_names(fields),
        },
        other => other.to_owned(),
    }
}

/// Returns the field names of an object, as in `{amount, currency}`, or `object` if the schema names no fields.
fn field_names(fields: &Map<String, Value>) -> String {
    let names: Vec<_> = match fields.get("properties").and_then(Value::as_object) {
        Some(properties) if !properties.is_empty() => properties.keys().map(String::as_str).collect(),
        _ => return "object".to_owned(),
    };
    let first_names = names[..names.len().min(FIELDS_MAX)].join(", ");
    let more = if names.len() > FIELDS_MAX { ", …" } else { "" };
    format!("{{{first_names}{more}}}")
}

fn join_choices(choices: impl Iterator<Item = String>) -> String {
    choices.collect::<Vec<_>>().join(" or ")
}

/// Returns the name of the entity type, if an object represents an entity: `customer` for
/// `{"type": "customer", "id": …, "available_tools": …}`.
fn entity_type_name(fields: &Map<String, Value>) -> Option<&str> {
    let properties = fields.get("properties")?;
    properties.get("available_tools")?;
    properties.get("type")?.get("const")?.as_str()
}

/// Returns the only property of an object, if it is required. Such an object encodes a case with a payload.
fn single_property(fields: &Map<String, Value>) -> Option<(&String, &Value)> {
    let properties = fields.get("properties")?.as_object()?;
    let required = fields.get("required")?.as_array()?;
    let is_case = properties.len() == 1 && required.len() == 1;
    properties.iter().next().filter(|_| is_case)
}

/// Adds the names of the entity types that values of a schema can contain, each once.
pub(crate) fn collect_entity_types<'a>(schema: &'a Value, names: &mut Vec<&'a str>) {
    match schema {
        Value::Object(fields) => match entity_type_name(fields) {
            Some(name) if names.contains(&name) => {}
            Some(name) => names.push(name),
            None => fields.values().for_each(|value| collect_entity_types(value, names)),
        },
        Value::Array(values) => values.iter().for_each(|value| collect_entity_types(value, names)),
        _ => {}
    }
}

/// Writes the properties of an object with types and docs, and nested properties indented.
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
    let required = schema["required"].as_array();
    for (name, property) in properties {
        let is_required = required.is_some_and(|required| required.iter().any(|other| other == name));
        page.indent(indent)
            .styled(NAME, name)
            .text(": ")
            .text(phrase_of_property(property, is_required));
        if !is_required {
            page.styled(FAINT, ", optional");
        }
        page.end();
        write_docs(page, property, indent + 4);
        if let Some(object) = object_within(property) {
            write_properties_at(page, object, indent + 4, depth + 1);
        }
    }
}

/// Writes the docs of a value and of its named cases. If the value has no docs, writes those of its unnamed
/// alternatives and of its array items.
pub(crate) fn write_docs(page: &mut Page, schema: &Value, indent: usize) {
    let write_description = |page: &mut Page, schema: &Value| {
        let text = schema["description"].as_str();
        text.is_some_and(|text| {
            page.block(indent, FAINT, text);
            true
        })
    };
    let has_docs = write_description(page, schema);
    for cases in ["anyOf", "oneOf"].iter().filter_map(|key| schema[key].as_array()) {
        for case in cases {
            match (
                case["const"].as_str().or_else(|| case_name(case)),
                case["description"].as_str(),
            ) {
                (Some(name), Some(text)) => {
                    page.block(indent, FAINT, &format!("`{name}`: {text}"));
                }
                (None, Some(_)) if !has_docs => {
                    write_description(page, case);
                }
                _ => {}
            }
        }
    }
    if !has_docs {
        write_description(page, &schema["items"]);
    }
}

fn case_name(schema: &Value) -> Option<&str> {
    single_property(schema.as_object()?).map(|(name, _)| name.as_str())
}

/// Returns the object schema that has the properties to write: the schema itself, or that of its first alternative or
/// of its array items. `None` for an entity, a case with a payload, and values without properties.
pub(crate) fn object_within(schema: &Value) -> Option<&Value> {
    let fields = schema.as_object()?;
    if entity_type_name(fields).is_some() || single_property(fields).is_some() {
        return None;
    }
    if fields.contains_key("properties") {
        return Some(schema);
    }
    let choices = fields.get("anyOf").and_then(Value::as_array);
    let inner = choices
        .and_then(|choices| choices.first())
        .or_else(|| fields.get("items"))?;
    object_within(inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn phrase_describes_the_values_of_a_type() {
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
            assert_eq!(phrase(&schema), expected, "{schema}");
        }
    }

    // attack: A13
    #[test]
    fn deep_type_is_cut() {
        let deep = (0..200).fold(
            json!({"type": "string"}),
            |inner, _| json!({"type": "array", "items": inner}),
        );
        assert!(phrase(&deep).ends_with("array of …"), "{}", phrase(&deep));
    }
}
