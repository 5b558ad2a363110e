//! The `null`s that stand for omitted optional properties in the arguments of a strict call.

use serde_json::{Map, Value};

use super::strict::{STRICT_DEPTH, allows_null, has_type, is_required};

/// The maximum nesting depth at which values are compared. It exceeds that of the provider because references and alternatives
/// add to it.
const REFERENCE_DEPTH_MAX: usize = 4 * STRICT_DEPTH;

/// The maximum number of comparisons of a value with an alternative or a schema inside it, for one call. Recursive references
/// could otherwise require any number.
const STEPS_MAX: usize = 100_000;

/// Returns the arguments of a strict call without the `null`s that stand for omitted optional properties of `schema`, the
/// schema before its conversion. Returns `None` if there are no such `null`s, or if the arguments are not a JSON object.
///
/// Inside `anyOf` and `oneOf`, the `null`s are removed if exactly one alternative fits the value. Otherwise they remain, also
/// after [`STEPS_MAX`] comparisons.
pub(crate) fn without_added_nulls(schema: &Value, arguments: &str) -> Option<String> {
    if !arguments.contains("null") {
        return None;
    }
    let mut arguments = Value::Object(serde_json::from_str::<Map<String, Value>>(arguments).ok()?);
    let mut removal = NullRemoval { root: schema, steps: 0 };
    let has_changed = removal.remove(schema, &mut arguments, 0);
    has_changed.then(|| arguments.to_string())
}

/// The removal of the added `null`s of one call.
struct NullRemoval<'a> {
    /// The schema that references refer to.
    root: &'a Value,
    /// The number of comparisons so far.
    steps: usize,
}

impl NullRemoval<'_> {
    /// Removes the added `null`s from a value. Returns whether there were any.
    fn remove(&mut self, schema: &Value, value: &mut Value, depth: usize) -> bool {
        // References can be recursive. Each one adds to the depth.
        if !matches!(value, Value::Object(_) | Value::Array(_)) || depth > REFERENCE_DEPTH_MAX {
            return false;
        }
        if schema.get("$ref").is_some() {
            let target = target(self.root, schema);
            return target.is_some_and(|target| self.remove(target, value, depth + 1));
        }
        let mut has_changed = false;
        // The alternatives first: all their properties are still present.
        for keyword in ["anyOf", "oneOf"] {
            let alternatives = schema.get(keyword).and_then(Value::as_array);
            if let Some(alternative) = alternatives.and_then(|all| self.only_fitting(all, value, depth)) {
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
            let is_added = |schema: &Value| !is_required(keywords, name) && !target_allows_null(root, schema);
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

    /// Returns the alternative that fits the value. Returns `None` if none or several fit.
    fn only_fitting<'s>(&mut self, alternatives: &'s [Value], value: &Value, depth: usize) -> Option<&'s Value> {
        let mut fitting = alternatives
            .iter()
            .filter(|alternative| self.may_fit(alternative, value, depth + 1));
        let first = fitting.next()?;
        let is_only = fitting.next().is_none() && self.steps <= STEPS_MAX;
        is_only.then_some(first)
    }

    /// Returns whether a value can be one that the converted schema accepts. Keywords that only limit the range or the length of
    /// a value are not compared.
    fn may_fit(&mut self, schema: &Value, value: &Value, depth: usize) -> bool {
        self.steps += 1;
        if depth > REFERENCE_DEPTH_MAX || self.steps > STEPS_MAX {
            return true;
        }
        if schema.get("$ref").is_some() {
            let target = target(self.root, schema);
            return target.is_none_or(|target| self.may_fit(target, value, depth + 1));
        }
        let Some(keywords) = schema.as_object() else {
            return true;
        };
        let is_other_value = keywords.get("const").is_some_and(|constant| !is_equal(constant, value));
        let values = keywords.get("enum").and_then(Value::as_array);
        let is_unlisted = values.is_some_and(|values| !values.iter().any(|listed| is_equal(listed, value)));
        if is_other_value || is_unlisted || !fits_type(keywords, value) {
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

    /// Returns whether an object has exactly the properties of the schema, as strict mode requires.
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

/// Returns the target of the reference of a schema, which is inside `root`.
fn target<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    let reference = schema.get("$ref").and_then(Value::as_str)?;
    root.pointer(reference.strip_prefix('#')?)
}

/// Returns whether a schema, the target of its reference, or the target of one of its alternatives accepts `null`.
fn target_allows_null(root: &Value, schema: &Value) -> bool {
    let schema = target(root, schema).unwrap_or(schema);
    let alternatives = ["anyOf", "oneOf"].iter();
    let mut alternatives = alternatives
        .filter_map(|keyword| schema.get(*keyword)?.as_array())
        .flatten();
    allows_null(schema) || alternatives.any(|alternative| target(root, alternative).is_some_and(allows_null))
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

/// Returns whether two values are equal. A number is equal to its other notations, such as `1` and `1.0`.
fn is_equal(one: &Value, other: &Value) -> bool {
    one == other || (one.is_number() && other.is_number() && one.as_f64() == other.as_f64())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::super::strict::strict_schema;
    use super::*;

    fn back(schema: &Value, arguments: &Value) -> Option<Value> {
        let back = without_added_nulls(schema, &arguments.to_string())?;
        Some(serde_json::from_str(&back).unwrap())
    }

    /// Returns a schema with the property `shape`, which is an array of one of these.
    fn shapes(keyword: &str, alternatives: Value) -> Value {
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

    fn square() -> Value {
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
            let schema = shapes(
                keyword,
                json!([{"$ref": "#/$defs/circle"}, square(), {"type": "string"}]),
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
            assert_eq!(back(&schema, &arguments).unwrap(), expected, "{keyword}");
            let required = json!({"shape": [{"kind": "circle", "label": null, "note": null}]});
            assert_eq!(back(&schema, &required), None, "a required property was not omitted");
        }
    }

    #[test]
    fn nulls_remain_if_no_alternative_or_more_than_one_fits() {
        let alternative = |label: Value| json!({"type": "object", "properties": {"label": label, "size": {"type": "number"}}, "required": ["size"]});
        let both = json!([
            alternative(json!({"type": "string"})),
            alternative(json!({"type": ["string", "null"]}))
        ]);
        let schema = shapes("anyOf", both);
        for shape in [
            json!({"label": null, "size": 1}),
            json!({"label": null, "size": "1"}),
            json!({"label": null}),
            json!({"label": null, "size": 1, "other": 1}),
        ] {
            assert_eq!(back(&schema, &json!({"shape": [shape]})), None);
        }
    }

    #[test]
    fn an_omitted_union_is_removed_unless_an_alternative_accepts_null() {
        let schema = |other: &str| {
            json!({
                "type": "object",
                "properties": {"shape": {"anyOf": [square(), {"$ref": other}]}},
                "$defs": {"some": {"type": "integer"}, "none": {"type": ["integer", "null"]}},
            })
        };
        let arguments = json!({"shape": null});
        assert_eq!(back(&schema("#/$defs/some"), &arguments).unwrap(), json!({}));
        assert_eq!(back(&schema("#/$defs/none"), &arguments), None);
    }

    #[test]
    fn alternatives_that_refer_to_themselves_end() {
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/any"}}, "required": ["next"]});
        let schema = json!({
            "type": "object",
            "properties": {"any": {"$ref": "#/$defs/any"}},
            "$defs": {"any": {"anyOf": vec![node; 20]}},
        });
        let value = (0..12).fold(json!("null"), |value, _| json!({"next": value}));
        assert_eq!(back(&schema, &json!({"any": value})), None);
    }
}
