//! Removal of the `null`s that strict mode adds.
//!
//! In OpenAI's strict mode, every property is required. The conversion to strict mode makes optional properties nullable, so
//! that the model writes `null` for a property that it omits. The tool's own schema may not accept this `null`.

use serde_json::{Map, Value};

use super::strict::{STRICT_SCHEMA_DEPTH, allows_null, has_type, is_required};

/// The maximum depth of the recursion over a value and its schema. References and alternatives add to the nesting depth of the
/// value, so this limit exceeds [`STRICT_SCHEMA_DEPTH`].
const RECURSION_DEPTH_MAX: usize = 4 * STRICT_SCHEMA_DEPTH;

/// The maximum number of comparisons of a value with a schema, for one tool call. With recursive references, the number of
/// comparisons could otherwise grow exponentially with the depth.
const COMPARISONS_MAX: usize = 100_000;

/// Removes the `null`s of omitted optional properties from the arguments of a call, or from an answer. `schema` is the schema
/// before its conversion to strict mode. Returns `None` if nothing was removed, or if the arguments are not a JSON object.
///
/// Inside `anyOf` and `oneOf`, the `null`s are removed only if exactly one alternative fits the value. They remain if this is
/// not known after [`COMPARISONS_MAX`] comparisons.
pub(crate) fn without_added_nulls(schema: &Value, arguments: &str) -> Option<String> {
    if !arguments.contains("null") {
        return None;
    }
    let mut arguments = Value::Object(serde_json::from_str::<Map<String, Value>>(arguments).ok()?);
    let mut removal = NullRemoval {
        root: schema,
        comparisons: 0,
    };
    let has_changed = removal.remove(schema, &mut arguments, 0);
    has_changed.then(|| arguments.to_string())
}

/// The removal of the added `null`s of one call.
struct NullRemoval<'a> {
    /// The complete schema, which contains the targets of references.
    root: &'a Value,
    /// The number of comparisons so far.
    comparisons: usize,
}

impl NullRemoval<'_> {
    /// Removes the added `null`s from a value. Returns whether the value has changed.
    fn remove(&mut self, schema: &Value, value: &mut Value, depth: usize) -> bool {
        // References can be recursive, so each one adds to the depth.
        if !matches!(value, Value::Object(_) | Value::Array(_)) || depth > RECURSION_DEPTH_MAX {
            return false;
        }
        if schema.get("$ref").is_some() {
            let target = reference_target(self.root, schema);
            return target.is_some_and(|target| self.remove(target, value, depth + 1));
        }
        let mut has_changed = false;
        // The alternatives come first: `may_fit` needs all properties, and `remove_from_object` removes some.
        for keyword in ["anyOf", "oneOf"] {
            let alternatives = schema.get(keyword).and_then(Value::as_array);
            if let Some(alternative) = alternatives.and_then(|all| self.unique_fitting(all, value, depth)) {
                has_changed |= self.remove(alternative, value, depth + 1);
            }
        }
        match value {
            Value::Object(values) => has_changed |= self.remove_from_object(schema, values, depth),
            Value::Array(items) => {
                if let Some(schema) = schema.get("items") {
                    for item in items {
                        has_changed |= self.remove(schema, item, depth + 1);
                    }
                }
            }
            _ => {}
        }
        has_changed
    }

    fn remove_from_object(&mut self, schema: &Value, values: &mut Map<String, Value>, depth: usize) -> bool {
        let Some(keywords) = schema.as_object() else {
            return false;
        };
        let Some(properties) = keywords.get("properties").and_then(Value::as_object) else {
            return false;
        };
        let (root, count_before) = (self.root, values.len());
        values.retain(|name, value| {
            let is_added = |schema: &Value| !is_required(keywords, name) && !resolved_allows_null(root, schema);
            !(value.is_null() && properties.get(name).is_some_and(is_added))
        });
        let mut has_changed = values.len() != count_before;
        for (name, value) in values {
            if let Some(schema) = properties.get(name) {
                has_changed |= self.remove(schema, value, depth + 1);
            }
        }
        has_changed
    }

    /// Returns the alternative that fits the value. Returns `None` if no alternative or more than one fits.
    fn unique_fitting<'s>(&mut self, alternatives: &'s [Value], value: &Value, depth: usize) -> Option<&'s Value> {
        let mut fitting = alternatives
            .iter()
            .filter(|alternative| self.may_fit(alternative, value, depth + 1));
        let first = fitting.next()?;
        let is_unique = fitting.next().is_none() && self.comparisons <= COMPARISONS_MAX;
        is_unique.then_some(first)
    }

    /// Returns whether the schema, converted to strict mode, may accept the value. Ignores the keywords that only limit the range
    /// or the length of a value. Returns `true` if a limit is exceeded or the target of a reference does not exist.
    fn may_fit(&mut self, schema: &Value, value: &Value, depth: usize) -> bool {
        self.comparisons += 1;
        if depth > RECURSION_DEPTH_MAX || self.comparisons > COMPARISONS_MAX {
            return true;
        }
        if schema.get("$ref").is_some() {
            let target = reference_target(self.root, schema);
            return target.is_none_or(|target| self.may_fit(target, value, depth + 1));
        }
        let Some(keywords) = schema.as_object() else {
            return true;
        };
        let differs_from_const = keywords.get("const").is_some_and(|constant| !is_equal(constant, value));
        let enum_values = keywords.get("enum").and_then(Value::as_array);
        let is_outside_enum = enum_values.is_some_and(|values| !values.iter().any(|listed| is_equal(listed, value)));
        if differs_from_const || is_outside_enum || !fits_type(keywords, value) {
            return false;
        }
        for keyword in ["anyOf", "oneOf"] {
            let alternatives = keywords.get(keyword).and_then(Value::as_array);
            let fits_none = |all: &Vec<Value>| !all.iter().any(|schema| self.may_fit(schema, value, depth + 1));
            if alternatives.is_some_and(fits_none) {
                return false;
            }
        }
        match value {
            Value::Object(values) => self.may_fit_properties(keywords, values, depth),
            Value::Array(items) => match keywords.get("items") {
                Some(schema) => items.iter().all(|item| self.may_fit(schema, item, depth + 1)),
                None => true,
            },
            _ => true,
        }
    }

    /// Returns whether an object has exactly the properties of the schema, as strict mode requires, and their schemas may accept
    /// the values.
    fn may_fit_properties(&mut self, keywords: &Map<String, Value>, values: &Map<String, Value>, depth: usize) -> bool {
        let Some(properties) = keywords.get("properties").and_then(Value::as_object) else {
            return true;
        };
        properties.len() == values.len()
            && properties.iter().all(|(name, schema)| match values.get(name) {
                Some(Value::Null) if !is_required(keywords, name) => true,
                Some(value) => self.may_fit(schema, value, depth + 1),
                None => false,
            })
    }
}

/// Returns the part of `root` to which the `$ref` of a schema refers.
fn reference_target<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    let reference = schema.get("$ref").and_then(Value::as_str)?;
    root.pointer(reference.strip_prefix('#')?)
}

/// Returns whether a schema accepts `null`. Follows its reference and the references of its alternatives, but no further ones.
fn resolved_allows_null(root: &Value, schema: &Value) -> bool {
    let schema = reference_target(root, schema).unwrap_or(schema);
    let alternatives = ["anyOf", "oneOf"].iter();
    let mut alternatives = alternatives
        .filter_map(|keyword| schema.get(*keyword)?.as_array())
        .flatten();
    let has_null_target = |alternative: &Value| reference_target(root, alternative).is_some_and(allows_null);
    allows_null(schema) || alternatives.any(has_null_target)
}

fn fits_type(keywords: &Map<String, Value>, value: &Value) -> bool {
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_integer = || value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|float| float.fract() == 0.0);
    !keywords.contains_key("type")
        || has_type(keywords, name)
        || (value.is_number() && has_type(keywords, "integer") && is_integer())
}

/// Returns whether two values are equal. Numbers are compared by their values, so that `1` equals `1.0`.
fn is_equal(one: &Value, other: &Value) -> bool {
    one == other || (one.is_number() && other.is_number() && one.as_f64() == other.as_f64())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::super::strict::strict_schema;
    use super::*;

    fn restore(schema: &Value, arguments: &Value) -> Option<Value> {
        let restored = without_added_nulls(schema, &arguments.to_string())?;
        Some(serde_json::from_str(&restored).unwrap())
    }

    /// Returns a schema whose property `shape` is an array. Each of its items must fit one of the alternatives.
    fn shapes_schema(keyword: &str, alternatives: Value) -> Value {
        json!({
            "type": "object",
            "properties": {"shape": {"type": "array", "items": {keyword: alternatives}}},
            "$defs": {
                "circle": {
                    "type": "object",
                    "properties": {"kind": {"const": "circle"}, "label": {"type": "string"}, "note": {"type": "string"}},
                    "required": ["kind", "label"],
                },
            },
        })
    }

    fn square_schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "kind": {"const": "square"},
                "label": {"type": ["string", "null"]},
                "note": {"type": "string"},
            },
            "required": ["kind"],
        })
    }

    #[test]
    fn nulls_inside_alternatives_are_removed_if_one_alternative_fits() {
        for keyword in ["anyOf", "oneOf"] {
            let schema = shapes_schema(
                keyword,
                json!([{"$ref": "#/$defs/circle"}, square_schema(), {"type": "string"}]),
            );
            assert!(strict_schema(&schema).is_some());
            let arguments = json!({"shape": [
                {"kind": "circle", "label": "a", "note": null},
                {"kind": "square", "label": null, "note": null},
                "text",
            ]});
            let expected = json!({"shape": [
                {"kind": "circle", "label": "a"},
                {"kind": "square", "label": null},
                "text",
            ]});
            assert_eq!(restore(&schema, &arguments).unwrap(), expected, "{keyword}");
            let null_label = json!({"shape": [{"kind": "circle", "label": null, "note": null}]});
            assert_eq!(
                restore(&schema, &null_label),
                None,
                "a required property was not omitted"
            );
        }
    }

    #[test]
    fn nulls_remain_if_no_alternative_or_more_than_one_fits() {
        let alternative = |label: Value| json!({"type": "object", "properties": {"label": label, "size": {"type": "number"}}, "required": ["size"]});
        let alternatives = json!([
            alternative(json!({"type": "string"})),
            alternative(json!({"type": ["string", "null"]}))
        ]);
        let schema = shapes_schema("anyOf", alternatives);
        for shape in [
            json!({"label": null, "size": 1}),
            json!({"label": null, "size": "1"}),
            json!({"label": null}),
            json!({"label": null, "size": 1, "other": 1}),
        ] {
            assert_eq!(restore(&schema, &json!({"shape": [shape]})), None);
        }
    }

    #[test]
    fn the_null_of_an_omitted_union_is_removed_unless_an_alternative_accepts_null() {
        let schema = |reference: &str| {
            json!({
                "type": "object",
                "properties": {"shape": {"anyOf": [square_schema(), {"$ref": reference}]}},
                "$defs": {"integer": {"type": "integer"}, "nullable": {"type": ["integer", "null"]}},
            })
        };
        let arguments = json!({"shape": null});
        assert_eq!(restore(&schema("#/$defs/integer"), &arguments).unwrap(), json!({}));
        assert_eq!(restore(&schema("#/$defs/nullable"), &arguments), None);
    }

    #[test]
    fn recursive_alternatives_are_compared_a_limited_number_of_times() {
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/any"}}, "required": ["next"]});
        let schema = json!({
            "type": "object",
            "properties": {"any": {"$ref": "#/$defs/any"}},
            "$defs": {"any": {"anyOf": vec![node; 20]}},
        });
        // The string `null` fits no alternative, so every combination of alternatives would be compared.
        let value = (0..12).fold(json!("null"), |value, _| json!({"next": value}));
        assert_eq!(restore(&schema, &json!({"any": value})), None);
    }
}
