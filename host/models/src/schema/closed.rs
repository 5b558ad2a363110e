//! Closed schemas, which have no references and whose objects accept only the listed properties. Local servers build grammars
//! from them, and Anthropic's API requires them for answers.

use serde_json::{Map, Value, json};

/// The maximum nesting depth, with references resolved.
const DEPTH_MAX: usize = 16;

/// The maximum number of schemas in a converted schema. Each reference is replaced by a copy of its target.
const SCHEMAS_MAX: usize = 2_000;

/// Keywords that are copied unchanged.
const KEPT_KEYWORDS: [&str; 4] = ["const", "description", "enum", "title"];

/// Keywords that only restrict or describe a value, or that hold definitions. Without them, the schema still accepts all values
/// that it accepted before.
const DROPPED_KEYWORDS: [&str; 22] = [
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "contentEncoding",
    "contentMediaType",
    "default",
    "definitions",
    "deprecated",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "multipleOf",
    "pattern",
    "uniqueItems",
];

/// Converts a schema to a closed one: without references, without restrictions of numbers, strings and lengths, and with objects
/// that accept only the listed properties.
///
/// Returns `None` for a schema that is recursive, too deep or too large, or that cannot be expressed, such as an object
/// without a list of properties or with a schema for additional ones.
pub(crate) fn closed_schema(schema: &Value) -> Option<Value> {
    let mut converter = Converter {
        root: schema,
        schemas_left: SCHEMAS_MAX,
    };
    converter.convert(schema, 0)
}

struct Converter<'s> {
    /// The complete schema, which contains the targets of references.
    root: &'s Value,
    /// The number of schemas that may still be converted.
    schemas_left: usize,
}

impl Converter<'_> {
    /// Converts a schema at a nesting depth. Returns `None` if it cannot be expressed, is too deep, or exceeds `schemas_left`.
    fn convert(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        self.schemas_left = self.schemas_left.checked_sub(1)?;
        let keywords = schema.as_object().filter(|_| depth <= DEPTH_MAX)?;
        if let Some(target) = keywords.get("$ref").and_then(Value::as_str) {
            let target = self.root.pointer(target.strip_prefix('#')?)?;
            return self.convert(target, depth + 1);
        }
        let mut converted = Map::new();
        for (keyword, value) in keywords {
            let (keyword, value) = match keyword.as_str() {
                "type" => ("type", value.clone()),
                "properties" => ("properties", self.convert_properties(value, depth)?),
                "required" => ("required", value.clone()),
                "additionalProperties" if *value == json!(false) => continue,
                "items" => ("items", self.convert(value, depth + 1)?),
                "anyOf" | "oneOf" => ("anyOf", self.convert_each(value, depth)?),
                keyword if KEPT_KEYWORDS.contains(&keyword) => (keyword, value.clone()),
                keyword if DROPPED_KEYWORDS.contains(&keyword) => continue,
                _ => return None,
            };
            converted.insert(keyword.to_owned(), value);
        }
        let has_type = |name: &str| match keywords.get("type") {
            Some(Value::String(type_name)) => type_name == name,
            Some(Value::Array(type_names)) => type_names.iter().any(|type_name| type_name == name),
            _ => false,
        };
        if has_type("object") {
            converted.get("properties")?;
            converted.insert("additionalProperties".to_owned(), json!(false));
        }
        let accepts_any_items = has_type("array") && !keywords.contains_key("items");
        let is_typed = ["type", "anyOf", "oneOf", "enum", "const"]
            .iter()
            .any(|keyword| keywords.contains_key(*keyword));
        (is_typed && !accepts_any_items).then_some(Value::Object(converted))
    }

    fn convert_properties(&mut self, properties: &Value, depth: usize) -> Option<Value> {
        let mut converted = Map::new();
        for (name, schema) in properties.as_object()? {
            converted.insert(name.clone(), self.convert(schema, depth + 1)?);
        }
        Some(Value::Object(converted))
    }

    fn convert_each(&mut self, schemas: &Value, depth: usize) -> Option<Value> {
        let mut converted = Vec::new();
        for schema in schemas.as_array()? {
            converted.push(self.convert(schema, depth + 1)?);
        }
        Some(Value::Array(converted))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_and_restrictions_are_left_out() {
        let schema = json!({
            "$defs": {"id": {"type": "string", "pattern": "^[a-z]+$"}},
            "type": "object",
            "properties": {"id": {"$ref": "#/$defs/id"}, "n": {"type": "integer", "minimum": 1}},
            "required": ["id"],
        });
        let expected = json!({
            "type": "object",
            "properties": {"id": {"type": "string"}, "n": {"type": "integer"}},
            "required": ["id"],
            "additionalProperties": false,
        });
        assert_eq!(closed_schema(&schema).unwrap(), expected);
    }

    #[test]
    fn recursive_large_and_open_schemas_are_not_converted() {
        let recursive = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
        let fifty_references = |name: &str| vec![json!({"$ref": format!("#/$defs/{name}")}); 50];
        let large = json!({
            "$defs": {"a": {"anyOf": fifty_references("b")}, "b": {"type": "null"}},
            "anyOf": fifty_references("a"),
        });
        let open = json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}});
        let inexpressible = [
            recursive,
            large,
            open,
            json!({"type": "object"}),
            json!({}),
            json!(true),
            json!({"allOf": []}),
        ];
        for schema in inexpressible {
            assert_eq!(closed_schema(&schema), None, "{schema}");
        }
    }
}
