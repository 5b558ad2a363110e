//! The repair of schemas of guests and servers: keywords that cannot be checked are left out.
//!
//! Without a keyword, a schema accepts more values. So a tool can be used although a part of its schema cannot be checked, and
//! the tool itself refuses the values that it does not accept. Inside of `not`, `oneOf` and `if`, a schema that accepts more makes
//! the outer schema accept less, so these keywords are then left out, too.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::pattern_budget::PatternBudget;
use super::schema_dialect::Dialect;
use super::schema_keywords::{ValueForm, is_annotation, is_restriction, is_type, is_unchecked, value_form};
use super::schema_reference::{referenced_keywords, target_pointer};

/// Returns a schema without the keywords that cannot be checked, and without references to targets outside of the schema.
pub(super) fn repaired(schema: Value, patterns: &mut PatternBudget) -> Value {
    let schema = with_inlined_root(schema);
    let mut repair = Repair::of(&schema, patterns);
    let schema = repair.root(schema);
    if repair.omissions == 0 || repair.references == 0 {
        return schema;
    }
    // The target of any reference may now accept more values.
    let mut unlimited = PatternBudget::default();
    let mut repair = Repair::of(&schema, &mut unlimited);
    repair.accepts_more_behind_references = true;
    repair.root(schema)
}

/// Replaces a reference in the root by the keywords of its target, because the root of a tool's schema must describe an object. An
/// adjacent keyword takes precedence.
fn with_inlined_root(schema: Value) -> Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(target_pointer);
    let target = target
        .and_then(|pointer| schema.pointer(&pointer)?.as_object())
        .cloned();
    match (target, schema) {
        (Some(mut target), Value::Object(mut keywords)) => {
            target.shift_remove("$ref");
            keywords.shift_remove("$ref");
            for (keyword, value) in target {
                keywords.entry(keyword).or_insert(value);
            }
            Value::Object(keywords)
        }
        (_, schema) => schema,
    }
}

struct Repair<'p> {
    /// The schema before the repair, in which the targets of references are looked up.
    document: Value,
    dialect: Dialect,
    patterns: &'p mut PatternBudget,
    /// The keywords of the root into which references point.
    referenced_keywords: BTreeSet<String>,
    /// Whether the target of a reference may accept more values than its author intended.
    accepts_more_behind_references: bool,
    /// The number of omitted keywords that restricted values.
    omissions: usize,
    /// The number of references that were kept.
    references: usize,
}

impl<'p> Repair<'p> {
    fn of(document: &Value, patterns: &'p mut PatternBudget) -> Self {
        Self {
            document: document.clone(),
            dialect: Dialect::of(document),
            patterns,
            referenced_keywords: referenced_keywords(document),
            accepts_more_behind_references: false,
            omissions: 0,
            references: 0,
        }
    }

    fn root(&mut self, schema: Value) -> Value {
        let Value::Object(keywords) = schema else {
            return self.schema(schema);
        };
        let dialect = self.dialect.name();
        let (inner, outer): (Map<_, _>, Map<_, _>) = keywords
            .into_iter()
            .partition(|(keyword, _)| value_form(keyword).is_none() && self.referenced_keywords.contains(keyword));
        let mut repaired: Map<_, _> = dialect
            .map(|name| ("$schema".to_owned(), json!(name)))
            .into_iter()
            .collect();
        repaired.extend(self.keywords(outer));
        // JSON Schema does not define these keywords, but they contain definitions to which references lead.
        repaired.extend(
            inner
                .into_iter()
                .map(|(keyword, value)| (keyword, self.definitions(value))),
        );
        Value::Object(repaired)
    }

    /// Repairs a schema. A value that is not a schema becomes `true`, which accepts all values.
    fn schema(&mut self, schema: Value) -> Value {
        match schema {
            Value::Object(keywords) => Value::Object(self.keywords(keywords)),
            Value::Bool(accepts_all) => Value::Bool(accepts_all),
            _ => {
                self.omissions += 1;
                Value::Bool(true)
            }
        }
    }

    fn definitions(&mut self, value: Value) -> Value {
        let Value::Object(keywords) = value else { return value };
        let (inner, outer): (Map<_, _>, Map<_, _>) = keywords
            .into_iter()
            .partition(|(keyword, _)| value_form(keyword).is_none());
        let mut repaired = self.keywords(outer);
        repaired.extend(
            inner
                .into_iter()
                .map(|(keyword, value)| (keyword, self.definitions(value))),
        );
        Value::Object(repaired)
    }

    fn keywords(&mut self, mut keywords: Map<String, Value>) -> Map<String, Value> {
        self.dialect.convert(&mut keywords);
        let has_any_of = keywords.contains_key("anyOf");
        let mut repaired = Map::new();
        // Keywords that are left out because of another keyword.
        let mut dependent: Vec<&'static str> = vec!["$schema"];
        for (keyword, value) in keywords {
            if is_unchecked(&keyword, &value) {
                self.omissions += usize::from(is_restriction(&keyword));
                continue;
            }
            let (omissions, references) = (self.omissions, self.references);
            let name_count = value.as_object().map(Map::len);
            let value = match value_form(&keyword) {
                Some(form) => self.value(&keyword, form, value),
                None => Some(value),
            };
            let accepts_more =
                self.omissions > omissions || self.accepts_more_behind_references && self.references > references;
            match (keyword.as_str(), value) {
                (_, None) => {
                    self.omissions += usize::from(!is_annotation(&keyword));
                    dependent.extend(dependents_of_omitted(&keyword));
                }
                ("not", Some(_)) if accepts_more => {}
                ("if", Some(_)) if accepts_more => dependent.extend(["then", "else"]),
                ("oneOf", Some(schemas)) if accepts_more => {
                    if !has_any_of {
                        repaired.insert("anyOf".to_owned(), schemas);
                    }
                }
                (_, Some(value)) => {
                    if accepts_more && keyword == "contains" {
                        dependent.push("maxContains");
                    }
                    if keyword == "patternProperties" && value.as_object().map(Map::len) != name_count {
                        dependent.push("additionalProperties");
                    }
                    repaired.insert(keyword, value);
                }
            }
        }
        repaired.retain(|keyword, _| !dependent.contains(&keyword.as_str()));
        repaired
    }

    /// Repairs the value of a keyword. Returns `None` if it cannot be checked.
    fn value(&mut self, keyword: &str, form: ValueForm, value: Value) -> Option<Value> {
        let is_usable = match (form, value) {
            (ValueForm::Types, value) => return types(value),
            (ValueForm::Names, Value::Array(names)) => return Some(distinct_names(names)),
            (ValueForm::NameLists, Value::Object(lists)) => return Some(name_lists(lists)),
            (ValueForm::Schema | ValueForm::Items, schema @ (Value::Object(_) | Value::Bool(_))) => {
                return Some(self.schema(schema));
            }
            (ValueForm::Items | ValueForm::Schemas, Value::Array(schemas)) if !schemas.is_empty() => {
                return Some(schemas.into_iter().map(|schema| self.schema(schema)).collect());
            }
            (ValueForm::NamedSchemas | ValueForm::Dependencies, Value::Object(schemas)) => {
                return Some(self.named_schemas(keyword, schemas));
            }
            (ValueForm::Text, Value::String(text)) => {
                let is_usable = match keyword {
                    "pattern" => self.patterns.admits(&text),
                    "$ref" => self.has_target(&text),
                    _ => true,
                };
                return is_usable.then_some(Value::String(text));
            }
            (_, value) => (is_simple(form, &value), value),
        };
        let (is_usable, value) = is_usable;
        is_usable.then_some(value)
    }

    fn named_schemas(&mut self, keyword: &str, schemas: Map<String, Value>) -> Value {
        let mut repaired = Map::new();
        for (name, schema) in schemas {
            if keyword == "patternProperties" && !self.patterns.admits(&name) {
                self.omissions += 1;
                continue;
            }
            let schema = match schema {
                Value::Array(names) if keyword == "dependencies" => distinct_names(names),
                schema => self.schema(schema),
            };
            repaired.insert(name, schema);
        }
        Value::Object(repaired)
    }

    /// Returns whether a reference has a target inside of the schema. Counts the references that have one.
    fn has_target(&mut self, reference: &str) -> bool {
        let target = target_pointer(reference).and_then(|pointer| self.document.pointer(&pointer));
        let has_target = target.is_some_and(|target| target.is_object() || target.is_boolean());
        self.references += usize::from(has_target);
        has_target
    }
}

/// Returns the keywords that would accept fewer values without an omitted keyword.
fn dependents_of_omitted(keyword: &str) -> &'static [&'static str] {
    match keyword {
        "properties" | "patternProperties" => &["additionalProperties"],
        "prefixItems" => &["items"],
        "items" => &["additionalItems"],
        "if" => &["then", "else"],
        _ => &[],
    }
}

/// Returns whether a value has a form without schemas.
fn is_simple(form: ValueForm, value: &Value) -> bool {
    match form {
        ValueForm::AnyValue => true,
        ValueForm::Flag => value.is_boolean(),
        ValueForm::Number => value.is_number(),
        ValueForm::PositiveNumber => value.as_f64().is_some_and(|number| number > 0.0),
        ValueForm::Count => value.as_f64().is_some_and(|count| count >= 0.0 && count.fract() == 0.0),
        ValueForm::Values => value.as_array().is_some_and(|values| !values.is_empty()),
        _ => false,
    }
}

/// Returns a type or a list of different types. `None` if a type is unknown.
fn types(value: Value) -> Option<Value> {
    match value {
        Value::String(name) => is_type(&name).then_some(Value::String(name)),
        Value::Array(names) => {
            let are_known = names.iter().all(|name| name.as_str().is_some_and(is_type));
            (are_known && !names.is_empty()).then(|| distinct_names(names))
        }
        _ => None,
    }
}

/// Returns the different texts of a list.
fn distinct_names(names: Vec<Value>) -> Value {
    let mut distinct: Vec<Value> = Vec::with_capacity(names.len());
    let mut seen = BTreeSet::new();
    distinct.extend(names.into_iter().filter(|name| {
        let text = name.as_str().map(str::to_owned);
        text.is_some_and(|text| seen.insert(text))
    }));
    Value::Array(distinct)
}

fn name_lists(lists: Map<String, Value>) -> Value {
    let lists = lists.into_iter().filter_map(|(name, names)| match names {
        Value::Array(names) => Some((name, distinct_names(names))),
        _ => None,
    });
    Value::Object(lists.collect())
}
