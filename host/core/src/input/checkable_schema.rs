//! The part of an untrusted schema that is checked, so that compiling it and checking values take limited time and memory.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use serde_json::{Map, Value, json};

use super::pattern_budget::PatternBudget;
use super::schema_keywords::{has_data, has_named_schemas};
use super::schema_reference::{for_each_reference, pointer_segment, target_pointer};
use super::schema_repair::repaired;
use crate::limits::{SCHEMA_DEPTH_MAX, SCHEMA_PARTS_MAX};

/// The maximum number of times that `jsonschema` compiles a schema under `patternProperties`: once for an adjacent
/// `additionalProperties`, once if its pattern is plain text, and once if any pattern is not plain text.
const PATTERN_PROPERTY_COMPILATIONS_MAX: usize = 3;

/// Returns the part of a schema that is checked. It accepts every value that the schema accepts.
///
/// A recursive reference is followed once: what it describes further below is not checked. If following all references would
/// exceed [`SCHEMA_PARTS_MAX`], no reference is followed.
pub(super) fn checkable(schema: &Value) -> Value {
    let mut schema = repaired(schema.clone(), &mut PatternBudget::default());
    let mut walk = ReferenceWalk::of(&schema);
    let is_limited = walk.visit_schema(&schema, Position::ROOT).is_continue();
    let omitted = std::mem::take(&mut walk.omitted);
    if is_limited && omitted.is_empty() {
        return schema;
    }
    if is_limited {
        for pointer in omitted {
            if let Some(reference) = schema.pointer_mut(&pointer) {
                *reference = Value::Null;
            }
        }
    } else {
        for_each_reference(&mut schema, &mut |reference| *reference = Value::Null);
        if ReferenceWalk::of(&schema)
            .visit_schema(&schema, Position::ROOT)
            .is_break()
        {
            return json!({"type": "object"});
        }
    }
    // The repair leaves out references that are not texts, and adjusts the keywords around them.
    repaired(schema, &mut PatternBudget::default())
}

/// Visits a schema and the targets of its references.
struct ReferenceWalk<'a> {
    document: &'a Value,
    /// The number of JSON values that were visited. Each counts as often as `jsonschema` may compile it.
    values: usize,
    /// The JSON pointer of the visited value.
    location: String,
    /// The targets of the references through which the walk reached the visited value.
    targets: Vec<&'a Value>,
    /// The pointers of the references that must not be followed.
    omitted: BTreeSet<String>,
}

/// The position of a value in the walk.
#[derive(Clone, Copy)]
struct Position {
    depth: usize,
    /// The maximum number of times that `jsonschema` compiles the value.
    compilations_max: usize,
}

impl Position {
    const ROOT: Self = Self {
        depth: 0,
        compilations_max: 1,
    };

    /// Returns the position of a value inside the value at this position.
    fn below(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }
}

impl<'a> ReferenceWalk<'a> {
    fn of(document: &'a Value) -> Self {
        Self {
            document,
            values: 0,
            location: String::new(),
            targets: vec![document],
            omitted: BTreeSet::new(),
        }
    }

    /// Visits a schema, or a value that contains schemas. Breaks if there are too many values.
    fn visit_schema(&mut self, value: &'a Value, position: Position) -> ControlFlow<()> {
        self.count_value(position)?;
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.visit_at(&index.to_string(), item, position.below())?;
                }
            }
            Value::Object(keywords) => {
                for (keyword, field) in keywords {
                    self.visit_keyword(keyword, field, position)?;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn visit_at(&mut self, segment: &str, value: &'a Value, position: Position) -> ControlFlow<()> {
        let length = self.location.len();
        self.location.push('/');
        self.location.push_str(&pointer_segment(segment));
        let flow = self.visit_schema(value, position);
        self.location.truncate(length);
        flow
    }

    fn visit_keyword(&mut self, keyword: &str, value: &'a Value, position: Position) -> ControlFlow<()> {
        match value {
            Value::String(reference) if keyword == "$ref" => self.follow(reference, position),
            Value::Object(schemas) if has_named_schemas(keyword) => {
                self.visit_named_schemas(keyword, schemas, position.below())
            }
            value if has_data(keyword) => self.count_data(value, position.below()),
            value => self.visit_at(keyword, value, position.below()),
        }
    }

    fn visit_named_schemas(
        &mut self,
        keyword: &str,
        schemas: &'a Map<String, Value>,
        position: Position,
    ) -> ControlFlow<()> {
        self.count_value(position)?;
        let factor = if keyword == "patternProperties" {
            PATTERN_PROPERTY_COMPILATIONS_MAX
        } else {
            1
        };
        let position = Position {
            compilations_max: position.compilations_max.saturating_mul(factor),
            ..position.below()
        };
        let length = self.location.len();
        self.location.push('/');
        self.location.push_str(keyword);
        for (name, schema) in schemas {
            self.visit_at(name, schema, position)?;
        }
        self.location.truncate(length);
        ControlFlow::Continue(())
    }

    /// Counts the values of data.
    fn count_data(&mut self, value: &Value, position: Position) -> ControlFlow<()> {
        self.count_value(position)?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.count_data(item, position)),
            Value::Object(fields) => fields.values().try_for_each(|field| self.count_data(field, position)),
            _ => ControlFlow::Continue(()),
        }
    }

    fn count_value(&mut self, position: Position) -> ControlFlow<()> {
        self.values = self.values.saturating_add(position.compilations_max);
        if self.values > SCHEMA_PARTS_MAX {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Visits the target of the reference at the current location. A reference back to a target that contains it, and a
    /// reference at a depth of more than [`SCHEMA_DEPTH_MAX`], is omitted.
    fn follow(&mut self, reference: &str, position: Position) -> ControlFlow<()> {
        self.count_value(position)?;
        let location = format!("{}/$ref", self.location);
        let target = target_pointer(reference).and_then(|pointer| {
            let target = self.document.pointer(&pointer)?;
            Some((pointer, target))
        });
        let is_on_path = |target: &Value| self.targets.iter().any(|outer| std::ptr::eq(*outer, target));
        let Some((pointer, target)) = target
            .filter(|(_, target)| position.depth < SCHEMA_DEPTH_MAX && !is_on_path(target))
            .filter(|_| !self.omitted.contains(&location))
        else {
            self.omitted.insert(location);
            return ControlFlow::Continue(());
        };
        let outer_location = std::mem::replace(&mut self.location, pointer);
        self.targets.push(target);
        let flow = self.visit_schema(target, position.below());
        self.targets.pop();
        self.location = outer_location;
        flow
    }
}
