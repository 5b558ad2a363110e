//! Subsets of JSON Schema, as lists of allowed keywords.

use serde_json::{Map, Value, json};

/// The nesting depth at which a schema is replaced by `{}`, which accepts all values.
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
    String,
    Number,
    /// A non-negative integer.
    Count,
    Boolean,
    StringList,
    /// The name of a type, or a list of names that is not empty.
    TypeNames,
    /// A list that is not empty, of values of any type.
    ValueList,
    AnyValue,
    /// An object. A boolean schema does not have this form.
    Schema,
    SchemaOrBoolean,
    /// A list of schemas that is not empty.
    SchemaList,
    /// An object whose values are schemas.
    SchemaMap,
}

/// The keywords that all providers accept.
const COMMON_KEYWORDS: &[(&str, ValueForm)] = &[
    ("$defs", ValueForm::SchemaMap),
    ("$ref", ValueForm::String),
    ("additionalProperties", ValueForm::SchemaOrBoolean),
    ("anyOf", ValueForm::SchemaList),
    ("description", ValueForm::String),
    ("enum", ValueForm::ValueList),
    ("format", ValueForm::String),
    ("items", ValueForm::Schema),
    ("maxItems", ValueForm::Count),
    ("maximum", ValueForm::Number),
    ("minItems", ValueForm::Count),
    ("minimum", ValueForm::Number),
    ("oneOf", ValueForm::SchemaList),
    ("prefixItems", ValueForm::SchemaList),
    ("properties", ValueForm::SchemaMap),
    ("required", ValueForm::StringList),
    ("title", ValueForm::String),
    ("type", ValueForm::TypeNames),
];

/// The keywords that all providers except Gemini accept.
const KEYWORDS_BEYOND_GEMINI: &[(&str, ValueForm)] = &[
    ("allOf", ValueForm::SchemaList),
    ("const", ValueForm::AnyValue),
    ("default", ValueForm::AnyValue),
    ("examples", ValueForm::ValueList),
    ("exclusiveMaximum", ValueForm::Number),
    ("exclusiveMinimum", ValueForm::Number),
    ("maxLength", ValueForm::Count),
    ("maxProperties", ValueForm::Count),
    ("minLength", ValueForm::Count),
    ("minProperties", ValueForm::Count),
    ("multipleOf", ValueForm::Number),
    ("not", ValueForm::Schema),
    ("pattern", ValueForm::String),
    ("uniqueItems", ValueForm::Boolean),
];

impl SchemaSubset {
    /// Converts the schema of a tool's arguments. The result has the type `object` and only allowed keywords, in their original
    /// order after `type`.
    ///
    /// A root that has another type, or that combines schemas, is replaced. The new root has the properties of the old root and
    /// of the combined schemas, all of them optional, and the description and definitions of the old root.
    pub(crate) fn convert(self, schema: &Value) -> Value {
        let empty = Map::new();
        let keywords = schema.as_object().unwrap_or(&empty);
        let mut root = Map::new();
        root.insert("type".to_owned(), json!("object"));
        let converted = self.convert_keywords(keywords, 0);
        let is_combined = COMBINATORS.iter().any(|keyword| keywords.contains_key(*keyword));
        if !is_combined && may_be_object(keywords) {
            root.extend(converted);
            root.insert("type".to_owned(), json!("object"));
        } else {
            root.extend(
                converted
                    .into_iter()
                    .filter(|(keyword, _)| keyword == "$defs" || keyword == "description"),
            );
            let mut properties = Map::new();
            self.collect_properties(keywords, &mut properties, 0);
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
    fn collect_properties(self, keywords: &Map<String, Value>, properties: &mut Map<String, Value>, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        if let Some(Value::Object(own_properties)) = keywords.get("properties") {
            for (name, schema) in own_properties {
                let schema = self.convert_nested(schema, depth);
                properties.entry(name.clone()).or_insert(schema);
            }
        }
        let combined = COMBINATORS
            .iter()
            .filter_map(|keyword| keywords.get(*keyword)?.as_array());
        for schema in combined.flatten().filter_map(Value::as_object) {
            self.collect_properties(schema, properties, depth + 1);
        }
    }

    /// Converts a schema inside of another one. A schema that is a boolean or too deep becomes `{}`, which accepts all values.
    fn convert_nested(self, schema: &Value, depth: usize) -> Value {
        match schema {
            Value::Object(keywords) if depth < DEPTH_MAX => Value::Object(self.convert_keywords(keywords, depth + 1)),
            _ => json!({}),
        }
    }

    /// Converts the allowed keywords of a schema, and drops the others.
    fn convert_keywords(self, keywords: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut converted = Map::new();
        for (keyword, value) in keywords {
            let (keyword, value) = match (self, keyword.as_str()) {
                (Self::Gemini, "oneOf") => ("anyOf", value.clone()),
                (Self::Gemini, "const") => ("enum", json!([value])),
                (_, "definitions") => ("$defs", value.clone()),
                (_, "$ref") => ("$ref", renamed_reference(value)),
                (_, keyword) => (keyword, value.clone()),
            };
            if let Some(value) = self
                .value_form(keyword)
                .and_then(|form| self.convert_value(form, value, depth))
            {
                match (converted.get_mut(keyword), value) {
                    // Of `$defs` and `definitions`, both can occur.
                    (Some(Value::Object(earlier)), Value::Object(later)) => {
                        for (name, schema) in later {
                            earlier.entry(name).or_insert(schema);
                        }
                    }
                    (Some(_), _) => {}
                    (None, value) => drop(converted.insert(keyword.to_owned(), value)),
                }
            }
        }
        converted
    }

    /// Returns the form of a keyword's value, or `None` if the keyword is not allowed.
    fn value_form(self, keyword: &str) -> Option<ValueForm> {
        let additional = match self {
            Self::General => KEYWORDS_BEYOND_GEMINI,
            Self::Gemini => &[],
        };
        let mut allowed = COMMON_KEYWORDS.iter().chain(additional);
        allowed.find(|(name, _)| *name == keyword).map(|(_, form)| *form)
    }

    /// Converts the value of a keyword. Returns `None` if it does not have the form that the keyword requires.
    fn convert_value(self, form: ValueForm, value: Value, depth: usize) -> Option<Value> {
        let fits = match (form, &value) {
            (ValueForm::Schema, _) => return value.is_object().then(|| self.convert_nested(&value, depth)),
            (ValueForm::SchemaOrBoolean, Value::Object(_)) => return Some(self.convert_nested(&value, depth)),
            (ValueForm::SchemaList, Value::Array(items)) if !items.is_empty() => {
                return Some(items.iter().map(|item| self.convert_nested(item, depth)).collect());
            }
            (ValueForm::SchemaMap, Value::Object(items)) => {
                let converted = items
                    .iter()
                    .map(|(name, item)| (name.clone(), self.convert_nested(item, depth)));
                return Some(Value::Object(converted.collect()));
            }
            (ValueForm::String, value) => value.is_string(),
            (ValueForm::TypeNames, Value::Array(names)) => !names.is_empty() && names.iter().all(Value::is_string),
            (ValueForm::StringList, Value::Array(texts)) => texts.iter().all(Value::is_string),
            (ValueForm::ValueList, Value::Array(values)) => !values.is_empty(),
            (ValueForm::TypeNames, value) => value.is_string(),
            (ValueForm::Number, value) => value.is_number(),
            (ValueForm::Count, value) => value.is_u64(),
            (ValueForm::Boolean | ValueForm::SchemaOrBoolean, value) => value.is_boolean(),
            (ValueForm::AnyValue, _) => true,
            (ValueForm::StringList | ValueForm::ValueList | ValueForm::SchemaList | ValueForm::SchemaMap, _) => false,
        };
        fits.then_some(value)
    }
}

/// Returns a reference with the new name of the keyword `definitions`, wherever the keyword occurs in the path.
fn renamed_reference(reference: &Value) -> Value {
    let Some(path) = reference.as_str().and_then(|text| text.strip_prefix("#/")) else {
        return reference.clone();
    };
    let mut is_name = false;
    let renamed = path.split('/').map(|token| {
        let keyword = if token == "definitions" && !is_name {
            "$defs"
        } else {
            token
        };
        // Each of these keywords is followed by a name, such as that of a property.
        is_name = !is_name && ["$defs", "properties", "patternProperties", "dependentSchemas"].contains(&keyword);
        keyword
    });
    json!(format!("#/{}", renamed.collect::<Vec<_>>().join("/")))
}

/// Returns whether the type of a schema is missing, is `object`, or is a list with `object`.
fn may_be_object(keywords: &Map<String, Value>) -> bool {
    match keywords.get("type") {
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
                "z": {"$ref": "#/definitions/id", "description": "See #/definitions/id."},
                "a": {"oneOf": [{"const": 1}, {"type": "integer", "minimum": 0, "exclusiveMinimum": true}]},
                "free": true,
            },
            "patternProperties": {"^x": {}},
            "required": ["z"],
        });
        let general = json!({
            "type": "object",
            "$defs": {"id": {"type": "string"}},
            "properties": {
                "z": {"$ref": "#/$defs/id", "description": "See #/definitions/id."},
                "a": {"oneOf": [{"const": 1}, {"type": "integer", "minimum": 0}]},
                "free": {},
            },
            "required": ["z"],
        });
        assert_eq!(SchemaSubset::General.convert(&schema).to_string(), general.to_string());
        let gemini = SchemaSubset::Gemini.convert(&schema);
        assert_eq!(
            gemini["properties"]["a"],
            json!({"anyOf": [{"enum": [1]}, {"type": "integer", "minimum": 0}]})
        );
    }

    #[test]
    fn references_follow_the_renaming_of_definitions() {
        let inner = json!({"definitions": {"b": {"type": "string"}}});
        let schema = json!({
            "$defs": {"c": {"type": "number"}},
            "definitions": {"a": inner, "c": {"type": "boolean"}},
            "properties": {"definitions": {"type": "integer"}},
        });
        let definitions = json!({"c": {"type": "number"}, "a": {"$defs": {"b": {"type": "string"}}}});
        assert_eq!(SchemaSubset::General.convert(&schema)["$defs"], definitions);
        for (reference, renamed) in [
            ("#/definitions/a/definitions/b", "#/$defs/a/$defs/b"),
            ("#/properties/definitions", "#/properties/definitions"),
            ("#/definitions/definitions", "#/$defs/definitions"),
            ("#", "#"),
        ] {
            assert_eq!(renamed_reference(&json!(reference)), json!(renamed));
        }
    }

    #[test]
    fn the_root_is_always_an_object() {
        for schema in [
            json!(true),
            json!(null),
            json!({}),
            json!({"type": "string"}),
            json!([1]),
        ] {
            let expected = json!({"type": "object", "properties": {}});
            assert_eq!(SchemaSubset::General.convert(&schema), expected, "{schema}");
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
    fn the_schema_of_an_answer_keeps_the_type_of_its_root() {
        let answer = json!({"type": "array", "items": {"type": "string", "pattern": "a"}, "uniqueItems": true});
        let expected = json!({"type": "array", "items": {"type": "string"}});
        assert_eq!(SchemaSubset::Gemini.convert_answer(&answer), expected);
        assert_eq!(SchemaSubset::Gemini.convert_answer(&json!(true)), json!({}));
    }

    #[test]
    fn the_nesting_depth_of_a_converted_schema_is_limited() {
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
