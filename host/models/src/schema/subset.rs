//! Subsets of JSON Schema, as lists of allowed keywords.

use serde_json::{Map, Value, json};

/// The nesting depth at which a schema is replaced by one that accepts everything.
const DEPTH_MAX: usize = 32;

/// Keywords that combine schemas. The root of a tool's schema must not have them.
const COMBINATORS: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// A subset of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaSubset {
    /// The keywords that OpenAI without strict mode and Anthropic accept.
    General,
    /// The keywords of Gemini's `parametersJsonSchema`.
    Gemini,
}

/// The form that the value of a keyword must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueForm {
    Text,
    Number,
    /// A non-negative integer.
    Count,
    Flag,
    Texts,
    /// The name of a type, or a list of such names.
    Types,
    /// A list that is not empty, of values of any type.
    Values,
    Anything,
    Schema,
    SchemaOrFlag,
    Schemas,
    NamedSchemas,
}

/// The keywords that all providers accept.
const COMMON: &[(&str, ValueForm)] = &[
    ("$defs", ValueForm::NamedSchemas),
    ("$ref", ValueForm::Text),
    ("additionalProperties", ValueForm::SchemaOrFlag),
    ("anyOf", ValueForm::Schemas),
    ("description", ValueForm::Text),
    ("enum", ValueForm::Values),
    ("format", ValueForm::Text),
    ("items", ValueForm::Schema),
    ("maxItems", ValueForm::Count),
    ("maximum", ValueForm::Number),
    ("minItems", ValueForm::Count),
    ("minimum", ValueForm::Number),
    ("oneOf", ValueForm::Schemas),
    ("prefixItems", ValueForm::Schemas),
    ("properties", ValueForm::NamedSchemas),
    ("required", ValueForm::Texts),
    ("title", ValueForm::Text),
    ("type", ValueForm::Types),
];
/// The keywords that all providers except Gemini accept.
const BEYOND_GEMINI: &[(&str, ValueForm)] = &[
    ("allOf", ValueForm::Schemas),
    ("const", ValueForm::Anything),
    ("default", ValueForm::Anything),
    ("examples", ValueForm::Values),
    ("exclusiveMaximum", ValueForm::Number),
    ("exclusiveMinimum", ValueForm::Number),
    ("maxLength", ValueForm::Count),
    ("maxProperties", ValueForm::Count),
    ("minLength", ValueForm::Count),
    ("minProperties", ValueForm::Count),
    ("multipleOf", ValueForm::Number),
    ("not", ValueForm::Schema),
    ("pattern", ValueForm::Text),
    ("uniqueItems", ValueForm::Flag),
];

impl SchemaSubset {
    /// Converts the schema of a tool's arguments to one for an object that has the allowed keywords only, in their original
    /// order.
    ///
    /// A root that is not an object, or that combines schemas, is replaced by an object. It has the properties of the root and
    /// of the combined schemas, all of them optional.
    pub(crate) fn convert(self, schema: &Value) -> Value {
        let empty = Map::new();
        let fields = schema.as_object().unwrap_or(&empty);
        let mut root = Map::new();
        root.insert("type".to_owned(), json!("object"));
        let converted = self.convert_keywords(fields, 0);
        let is_combined = COMBINATORS.iter().any(|keyword| fields.contains_key(*keyword));
        if !is_combined && is_object_type(fields) {
            root.extend(converted);
            root.insert("type".to_owned(), json!("object"));
        } else {
            root.extend(
                converted
                    .into_iter()
                    .filter(|(keyword, _)| keyword == "$defs" || keyword == "description"),
            );
            let mut properties = Map::new();
            self.collect_properties(fields, &mut properties, 0);
            root.insert("properties".to_owned(), Value::Object(properties));
        }
        root.entry("properties").or_insert_with(|| json!({}));
        Value::Object(root)
    }

    /// Converts the schema of an answer, whose root can be of any type.
    pub(crate) fn convert_answer(self, schema: &Value) -> Value {
        self.convert_nested(schema, 0)
    }

    /// Collects the properties of a schema and of the schemas that it combines. The first definition of a property wins.
    fn collect_properties(self, fields: &Map<String, Value>, properties: &mut Map<String, Value>, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        if let Some(Value::Object(own)) = fields.get("properties") {
            for (name, schema) in own {
                let schema = self.convert_nested(schema, depth);
                properties.entry(name.clone()).or_insert(schema);
            }
        }
        let combined = COMBINATORS
            .iter()
            .filter_map(|keyword| fields.get(*keyword)?.as_array());
        for schema in combined.flatten().filter_map(Value::as_object) {
            self.collect_properties(schema, properties, depth + 1);
        }
    }

    /// Converts a schema inside of another one. A boolean schema, or one that is too deep, becomes one that accepts
    /// everything.
    fn convert_nested(self, schema: &Value, depth: usize) -> Value {
        match schema {
            Value::Object(fields) if depth < DEPTH_MAX => Value::Object(self.convert_keywords(fields, depth + 1)),
            _ => json!({}),
        }
    }

    /// Converts the allowed keywords of a schema, and drops the others.
    fn convert_keywords(self, fields: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut converted = Map::new();
        for (keyword, value) in fields {
            let (keyword, value) = match (self, keyword.as_str()) {
                (Self::Gemini, "oneOf") => ("anyOf", value.clone()),
                (Self::Gemini, "const") => ("enum", json!([value])),
                (_, "definitions") => ("$defs", value.clone()),
                (_, keyword) => (keyword, value.clone()),
            };
            if let Some(value) = self
                .value_form(keyword)
                .and_then(|form| self.convert_value(form, value, depth))
            {
                converted.entry(keyword).or_insert(value);
            }
        }
        converted
    }

    /// Returns the form of a keyword's value, or `None` if the keyword is not allowed.
    fn value_form(self, keyword: &str) -> Option<ValueForm> {
        let beyond = match self {
            Self::General => BEYOND_GEMINI,
            Self::Gemini => &[],
        };
        let mut allowed = COMMON.iter().chain(beyond);
        allowed.find(|(name, _)| *name == keyword).map(|(_, form)| *form)
    }

    /// Converts the value of a keyword. Returns `None` if it does not have the form that the keyword requires.
    fn convert_value(self, form: ValueForm, value: Value, depth: usize) -> Option<Value> {
        let fits = match (form, &value) {
            (ValueForm::Schema, _) => return value.is_object().then(|| self.convert_nested(&value, depth)),
            (ValueForm::SchemaOrFlag, Value::Object(_)) => return Some(self.convert_nested(&value, depth)),
            (ValueForm::Schemas, Value::Array(items)) if !items.is_empty() => {
                return Some(items.iter().map(|item| self.convert_nested(item, depth)).collect());
            }
            (ValueForm::NamedSchemas, Value::Object(items)) => {
                let named = items
                    .iter()
                    .map(|(name, item)| (name.clone(), self.convert_nested(item, depth)));
                return Some(Value::Object(named.collect()));
            }
            (ValueForm::Text, Value::String(text)) => return Some(json!(text.replace("#/definitions/", "#/$defs/"))),
            (ValueForm::Types, Value::Array(names)) => !names.is_empty() && names.iter().all(Value::is_string),
            (ValueForm::Texts, Value::Array(texts)) => texts.iter().all(Value::is_string),
            (ValueForm::Values, Value::Array(values)) => !values.is_empty(),
            (ValueForm::Types, value) => value.is_string(),
            (ValueForm::Number, value) => value.is_number(),
            (ValueForm::Count, value) => value.is_u64(),
            (ValueForm::Flag | ValueForm::SchemaOrFlag, value) => value.is_boolean(),
            (ValueForm::Anything, _) => true,
            (
                ValueForm::Text | ValueForm::Texts | ValueForm::Values | ValueForm::Schemas | ValueForm::NamedSchemas,
                _,
            ) => false,
        };
        fits.then_some(value)
    }
}

fn is_object_type(fields: &Map<String, Value>) -> bool {
    match fields.get("type") {
        None => true,
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        Some(_) => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keywords_that_a_provider_does_not_accept_are_left_out() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "object",
            "definitions": {"id": {"type": "string", "x-internal": 1}},
            "properties": {
                "z": {"$ref": "#/definitions/id"},
                "a": {"oneOf": [{"const": 1}, {"type": "integer", "minimum": 0, "exclusiveMinimum": true}]},
                "free": true,
            },
            "patternProperties": {"^x": {}},
            "required": ["z"],
        });
        let anthropic = json!({
            "type": "object",
            "$defs": {"id": {"type": "string"}},
            "properties": {
                "z": {"$ref": "#/$defs/id"},
                "a": {"oneOf": [{"const": 1}, {"type": "integer", "minimum": 0}]},
                "free": {},
            },
            "required": ["z"],
        });
        assert_eq!(
            SchemaSubset::General.convert(&schema).to_string(),
            anthropic.to_string()
        );
        let gemini = SchemaSubset::Gemini.convert(&schema);
        assert_eq!(
            gemini["properties"]["a"],
            json!({"anyOf": [{"enum": [1]}, {"type": "integer", "minimum": 0}]})
        );
    }

    #[test]
    fn the_root_is_always_an_object() {
        for odd in [
            json!(true),
            json!(null),
            json!({}),
            json!({"type": "string"}),
            json!([1]),
        ] {
            let expected = json!({"type": "object", "properties": {}});
            assert_eq!(SchemaSubset::General.convert(&odd), expected, "{odd}");
        }
        let alternatives = json!({"description": "d", "anyOf": [
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "integer"}, "a": {}}},
        ]});
        let expected = json!({"type": "object", "description": "d", "properties": {
            "a": {"type": "string"}, "b": {"type": "integer"},
        }});
        assert_eq!(SchemaSubset::Gemini.convert(&alternatives), expected);
    }

    #[test]
    fn the_schema_of_an_answer_keeps_its_root() {
        let answer = json!({"type": "array", "items": {"type": "string", "pattern": "a"}, "uniqueItems": true});
        let expected = json!({"type": "array", "items": {"type": "string"}});
        assert_eq!(SchemaSubset::Gemini.convert_answer(&answer), expected);
        assert_eq!(SchemaSubset::Gemini.convert_answer(&json!(true)), json!({}));
    }

    #[test]
    fn a_deep_schema_ends_with_one_that_accepts_everything() {
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"type": "object", "properties": {"x": deep}});
        }
        let converted = SchemaSubset::Gemini.convert(&deep).to_string();
        assert!(converted.matches("properties").count() <= DEPTH_MAX + 2);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z$]{0,6}".prop_map(Value::from),
        ];
        let keyword = prop_oneof![
            Just("type".to_owned()),
            Just("properties".to_owned()),
            Just("anyOf".to_owned()),
            Just("items".to_owned()),
            Just("required".to_owned()),
            Just("enum".to_owned()),
            "[a-z]{1,4}",
        ];
        leaf.prop_recursive(6, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(keyword.clone(), inner, 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_schema_becomes_an_object_and_a_second_conversion_changes_nothing(schema in any_json()) {
            for subset in [SchemaSubset::General, SchemaSubset::Gemini] {
                let once = subset.convert(&schema);
                prop_assert_eq!(&once["type"], &json!("object"));
                prop_assert!(once["properties"].is_object());
                prop_assert_eq!(subset.convert(&once), once);
            }
        }
    }
}
