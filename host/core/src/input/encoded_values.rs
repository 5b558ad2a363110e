//! Arguments whose values are JSON in a text: some models and clients encode objects, lists and numbers twice.

use std::cell::Cell;

use serde_json::{Map, Value};

use crate::Arguments;
use crate::limits::ARGUMENT_PARTS_MAX;
use crate::text::{json_part_count, parse_json};

/// Maximum number of references, combinations and levels that are followed in a schema. Deeper values stay as they are.
const DEPTH_MAX: usize = 64;

/// Maximum number of schemas that are compared with the arguments of one call. A recursive schema can combine itself several
/// times at each level. Further texts stay as they are.
const STEPS_MAX: usize = 200_000;

/// Replaces each text in the arguments that is the JSON of a value by this value, if the schema accepts the value and no
/// text. An empty text becomes `null` if the schema accepts `null`. A tool without parameters gets no arguments.
///
/// ```
/// use serde_json::json;
/// use toolwit_core::decode_encoded_values;
///
/// let schema = json!({"type": "object", "properties": {"count": {"type": "integer"}, "note": {"type": "string"}}});
/// let arguments = json!({"count": "5", "note": "5"}).as_object().cloned().unwrap_or_default();
/// assert_eq!(json!(decode_encoded_values(&schema, arguments)), json!({"count": 5, "note": "5"}));
/// ```
#[must_use]
pub fn decode_encoded_values(schema: &Value, mut arguments: Arguments) -> Arguments {
    if takes_nothing(schema) {
        return Arguments::new();
    }
    let mut decoder = Decoder {
        root: schema,
        parts_left: ARGUMENT_PARTS_MAX,
        steps_left: Cell::new(STEPS_MAX),
    };
    decoder.decode_fields(schema, &mut arguments, 0);
    arguments
}

/// Returns whether an object schema has no properties and allows no others.
fn takes_nothing(schema: &Value) -> bool {
    let has_properties = schema["properties"]
        .as_object()
        .is_some_and(|properties| !properties.is_empty());
    let has_others = ["patternProperties", "$ref", "allOf", "anyOf", "oneOf"];
    !has_properties
        && schema["additionalProperties"] == Value::Bool(false)
        && has_others.iter().all(|keyword| schema.get(keyword).is_none())
}

struct Decoder<'s> {
    /// The complete schema, to which references lead.
    root: &'s Value,
    /// The number of values and names that decoded texts may still have.
    parts_left: usize,
    /// The number of schemas that may still be compared.
    steps_left: Cell<usize>,
}

impl<'s> Decoder<'s> {
    /// Takes one of the steps. Returns `false` if none is left.
    fn takes_step(&self) -> bool {
        let left = self.steps_left.get();
        self.steps_left.set(left.saturating_sub(1));
        left > 0
    }

    /// Decodes the texts in a value.
    fn decode(&mut self, schema: &'s Value, value: &mut Value, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        if value.is_string() && self.accepts(schema, value, depth) {
            return;
        }
        if let Value::String(text) = value {
            match self.decoded(schema, text, depth) {
                Some(decoded) => *value = decoded,
                None => return,
            }
        }
        match value {
            Value::Object(fields) => self.decode_fields(schema, fields, depth),
            Value::Array(items) => self.decode_items(schema, items, depth),
            _ => {}
        }
    }

    /// Returns the value that a text encodes, if the schema accepts a value of its type.
    fn decoded(&mut self, schema: &'s Value, text: &str, depth: usize) -> Option<Value> {
        let decoded = if text.trim().is_empty() {
            Value::Null
        } else {
            let parts = json_part_count(text.as_bytes());
            self.parts_left = self.parts_left.checked_sub(parts)?;
            parse_json(text).ok().filter(|decoded| !decoded.is_string())?
        };
        self.accepts(schema, &decoded, depth).then_some(decoded)
    }

    fn decode_fields(&mut self, schema: &'s Value, fields: &mut Map<String, Value>, depth: usize) {
        let names: Vec<&str> = fields.keys().map(String::as_str).collect();
        let Some(schema) = self.alternative(schema, depth, &|schema: &Value| {
            let properties = schema.get("properties").and_then(Value::as_object);
            properties.is_some_and(|properties| names.iter().all(|name| properties.contains_key(*name)))
        }) else {
            return;
        };
        for (name, field) in fields {
            let property = schema["properties"].get(name);
            if let Some(schema) = property.or_else(|| schema.get("additionalProperties")) {
                self.decode(schema, field, depth + 1);
            }
        }
    }

    fn decode_items(&mut self, schema: &'s Value, items: &mut [Value], depth: usize) {
        let has_items = |schema: &Value| schema.get("items").is_some() || schema.get("prefixItems").is_some();
        let Some(schema) = self.alternative(schema, depth, &has_items) else {
            return;
        };
        let first = schema
            .get("prefixItems")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter_mut().enumerate() {
            if let Some(schema) = first.get(index).or_else(|| schema.get("items")) {
                self.decode(schema, item, depth + 1);
            }
        }
    }

    /// Returns the part of a schema that describes a value: the schema itself, or the alternative that fits.
    fn alternative(&self, schema: &'s Value, depth: usize, fits: &dyn Fn(&Value) -> bool) -> Option<&'s Value> {
        let schema = self.resolved(schema, depth)?;
        if depth == 0 || fits(schema) || schema.get("properties").is_some() || !self.takes_step() {
            return Some(schema);
        }
        let combined = ["anyOf", "oneOf", "allOf"]
            .into_iter()
            .filter_map(|keyword| schema.get(keyword)?.as_array());
        let mut alternatives = combined.flatten().filter(|_| depth < DEPTH_MAX);
        alternatives
            .find_map(|alternative| {
                self.alternative(alternative, depth + 1, fits)
                    .filter(|schema| fits(schema))
            })
            .or(Some(schema))
    }

    /// Follows the references of a schema within the document.
    fn resolved(&self, mut schema: &'s Value, depth: usize) -> Option<&'s Value> {
        for _ in depth..DEPTH_MAX {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
                return Some(schema);
            };
            schema = self.root.pointer(reference.strip_prefix('#')?)?;
        }
        None
    }

    /// Returns whether a schema can accept a value, by its types and its constants. An unknown schema accepts everything.
    fn accepts(&self, schema: &'s Value, value: &Value, depth: usize) -> bool {
        if depth > DEPTH_MAX || !self.takes_step() {
            return true;
        }
        let Some(schema) = self.resolved(schema, depth) else {
            return true;
        };
        let accepts = |schema: &'s Value| self.accepts(schema, value, depth + 1);
        let is_type = |ty: &Value| ty.as_str().is_none_or(|ty| has_type(value, ty));
        let by_type = match schema.get("type") {
            Some(Value::Array(types)) => types.iter().any(is_type),
            Some(ty) => is_type(ty),
            None => true,
        };
        let list = |keyword: &str| schema.get(keyword).and_then(Value::as_array);
        by_type
            && schema.get("const").is_none_or(|constant| constant == value)
            && list("enum").is_none_or(|constants| constants.contains(value))
            && list("anyOf").is_none_or(|schemas| schemas.iter().any(accepts))
            && list("oneOf").is_none_or(|schemas| schemas.iter().any(accepts))
            && list("allOf").is_none_or(|schemas| schemas.iter().all(accepts))
            && *schema != Value::Bool(false)
    }
}

/// Returns whether a value has a type of JSON Schema.
fn has_type(value: &Value, ty: &str) -> bool {
    match ty {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decode(property: Value, value: Value) -> Value {
        let schema = json!({
            "type": "object",
            "properties": {"v": property},
            "$defs": {"point": {"type": "object", "properties": {"x": {"type": "integer"}}}, "loop": {"$ref": "#/$defs/loop"}},
        });
        let arguments = json!({ "v": value }).as_object().cloned().unwrap();
        decode_encoded_values(&schema, arguments)["v"].clone()
    }

    #[test]
    fn texts_that_encode_a_value_of_another_type_are_decoded() {
        let record =
            json!({"type": "object", "properties": {"class": {"type": "integer"}, "name": {"type": "string"}}});
        let variant = json!({"oneOf": [
            {"const": "none"},
            {"type": "object", "properties": {"default": {"type": "integer"}}, "required": ["default"]},
        ]});
        let flags = json!({"type": "array", "items": {"type": "string", "enum": ["class"]}});
        let nullable = json!({"type": ["integer", "null"]});
        for (schema, text, expected) in [
            (
                record.clone(),
                json!("{\"class\":1,\"name\":\"2\"}"),
                json!({"class": 1, "name": "2"}),
            ),
            (
                record.clone(),
                json!({"class": "1", "name": "2"}),
                json!({"class": 1, "name": "2"}),
            ),
            (record.clone(), json!("{\"class\":\"1\"}"), json!({"class": 1})),
            (
                json!({"anyOf": [record, {"type": "null"}]}),
                json!("{\"class\":\"1\"}"),
                json!({"class": 1}),
            ),
            (variant.clone(), json!("{\"default\": 3}"), json!({"default": 3})),
            (variant.clone(), json!({"default": "3"}), json!({"default": 3})),
            (variant, json!("none"), json!("none")),
            (flags, json!("[\"class\"]"), json!(["class"])),
            (
                json!({"type": "array", "items": {"type": "number"}}),
                json!(["1.5", 2]),
                json!([1.5, 2]),
            ),
            (
                json!({"type": "array", "prefixItems": [{"type": "boolean"}], "items": false}),
                json!("[\"true\"]"),
                json!([true]),
            ),
            (json!({"type": "integer"}), json!("5"), json!(5)),
            (json!({"type": "boolean"}), json!("true"), json!(true)),
            (nullable.clone(), json!(""), Value::Null),
            (nullable.clone(), json!("null"), Value::Null),
            (nullable, json!("7"), json!(7)),
            (
                json!({"$ref": "#/$defs/point"}),
                json!("{\"x\": \"1\"}"),
                json!({"x": 1}),
            ),
        ] {
            assert_eq!(decode(schema.clone(), text.clone()), expected, "{schema} {text}");
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        let long = format!("[{}]", "1,".repeat(ARGUMENT_PARTS_MAX));
        for (schema, text) in [
            (json!({"type": "string"}), "{\"a\": 1}"),
            (json!({"type": ["integer", "string"]}), "5"),
            (json!({}), "5"),
            (json!(true), "[]"),
            (json!({"description": "anything"}), "{}"),
            (json!({"type": "integer"}), "five"),
            (json!({"type": "integer"}), "1.5"),
            (json!({"type": "integer"}), "\"5\""),
            (json!({"type": "object"}), "[1]"),
            (json!({"type": "object"}), "{\"a\": 1, \"a\": 2}"),
            (json!({"type": "integer"}), ""),
            (
                json!({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]}),
                "55",
            ),
            (json!({"$ref": "#/$defs/loop"}), "5"),
            (json!({"$ref": "https://example.com/a"}), "5"),
            (json!({"type": "array"}), long.as_str()),
        ] {
            assert_eq!(decode(schema.clone(), json!(text)), json!(text), "{schema}");
        }
    }

    #[test]
    fn a_tool_without_parameters_gets_no_arguments() {
        let dummy = || json!({"random_string": ""}).as_object().cloned().unwrap();
        let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert!(decode_encoded_values(&closed, dummy()).is_empty());
        let open = json!({"type": "object", "properties": {}});
        assert_eq!(decode_encoded_values(&open, dummy()), dummy());
        let other = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
        assert_eq!(
            decode_encoded_values(&other, dummy()),
            dummy(),
            "the check of the arguments refuses it"
        );
    }

    // attack: B4
    #[test]
    fn a_recursive_schema_that_combines_itself_takes_a_limited_number_of_steps() {
        let reference = json!({"$ref": "#/$defs/a"});
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let schema = json!({
                "type": "object",
                "properties": {"q": reference},
                "$defs": {"a": {keyword: [reference, reference]}},
            });
            for value in [json!("5"), json!({"x": "5"}), json!(["5"])] {
                let arguments = json!({"q": value}).as_object().cloned().unwrap();
                let decoded = decode_encoded_values(&schema, arguments);
                assert!(decoded.contains_key("q"), "{keyword}");
            }
        }
    }
}
