//! Restricts the schemas of guests and servers, so that compiling them takes limited time and memory.

use serde_json::{Map, Value};

use super::input_validator::InputValidator;
use crate::limits::{
    SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_PARTS_MAX, SCHEMA_PARTS_SUM_MAX, SCHEMA_PATTERN_BYTES_SUM_MAX,
    SCHEMA_PATTERNS_MAX,
};
use crate::text::{parse_json, printable};

/// The maximum number of times that `jsonschema` compiles a schema under `patternProperties`: for an adjacent
/// `additionalProperties`, for patterns that are plain text, and for all patterns if one is not.
const PATTERN_TIMES: usize = 3;

/// The maximum length of a guest's text in an error message, in characters.
const QUOTED_CHARS_MAX: usize = 200;

/// Keywords that change the base of references, or refer to other documents.
const FORBIDDEN: [&str; 7] = [
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveRef",
    "$vocabulary",
];

/// Keywords that evaluate the adjacent keywords again: nested, they double the work at each step.
const DOUBLING: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// Keywords whose value is an object with arbitrary names, each with a schema as its value.
const NAMING: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];

/// Keywords whose values are data, not schemas.
const DATA: [&str; 5] = ["examples", "example", "default", "const", "enum"];

/// The supported dialects of JSON Schema.
const DIALECTS: [&str; 3] = ["draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema"];

/// The dialect of a schema that does not name one.
const DEFAULT_DIALECT: &str = DIALECTS[2];

/// Reads the schemas of one untrusted component or server, which share limits.
#[derive(Debug, Default)]
pub struct UntrustedSchemas {
    values: usize,
    patterns: usize,
    pattern_bytes: usize,
}

impl UntrustedSchemas {
    /// Parses, checks and compiles a schema. [`InputValidator::of_untrusted`] then validates arguments with it.
    ///
    /// # Errors
    /// The reason, as the predicate of a sentence whose subject is the schema.
    pub fn read(&mut self, text: &str) -> Result<Value, String> {
        if text.len() > SCHEMA_BYTES_MAX {
            return Err(format!("has {} bytes; at most {SCHEMA_BYTES_MAX} are read", text.len()));
        }
        let schema = parse_json(text).map_err(|error| format!("is not JSON: {}", short(&error.to_string())))?;
        let mut walk = SchemaWalk {
            root: &schema,
            values: 0,
            used: self,
        };
        walk.schema(&schema, Position::ROOT)?;
        let pattern_bytes = InputValidator::total_pattern_bytes(&schema)
            .map_err(|error| format!("is not valid: {}", short(&error.to_string())))?;
        self.pattern_bytes = self.pattern_bytes.saturating_add(pattern_bytes);
        if self.pattern_bytes > SCHEMA_PATTERN_BYTES_SUM_MAX {
            return Err(format!(
                "is too much: the patterns of all schemas together have more than {SCHEMA_PATTERN_BYTES_SUM_MAX} bytes in compiled form"
            ));
        }
        Ok(schema)
    }
}

/// Visits a schema and all schemas that it refers to.
struct SchemaWalk<'a> {
    root: &'a Value,
    values: usize,
    used: &'a mut UntrustedSchemas,
}

/// The position of a value in the walk.
#[derive(Clone, Copy)]
struct Position {
    depth: usize,
    /// The number of times that the value is compiled.
    times: usize,
}

impl Position {
    const ROOT: Self = Self { depth: 0, times: 1 };

    fn below(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }
}

impl<'a> SchemaWalk<'a> {
    /// Visits a value that is a schema, or that a reference may use as one.
    fn schema(&mut self, value: &'a Value, position: Position) -> Result<(), String> {
        self.count(position)?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.schema(item, position.below())),
            Value::Object(fields) => fields.iter().try_for_each(|(key, field)| {
                self.keyword(key, field, position)?;
                match field {
                    Value::Object(named) if NAMING.contains(&key.as_str()) => self.named(key, named, position.below()),
                    field if DATA.contains(&key.as_str()) => self.data(field, position.below()),
                    field => self.schema(field, position.below()),
                }
            }),
            _ => Ok(()),
        }
    }

    /// Visits the named schemas of a keyword.
    fn named(&mut self, keyword: &str, named: &'a Map<String, Value>, position: Position) -> Result<(), String> {
        self.count(position)?;
        let times = match keyword {
            "patternProperties" => PATTERN_TIMES,
            _ => 1,
        };
        let position = Position {
            times: position.times.saturating_mul(times),
            ..position.below()
        };
        named.values().try_for_each(|schema| self.schema(schema, position))
    }

    /// Visits data, which is counted but not interpreted.
    fn data(&mut self, value: &'a Value, position: Position) -> Result<(), String> {
        self.count(position)?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.data(item, position.below())),
            Value::Object(fields) => fields.values().try_for_each(|field| self.data(field, position.below())),
            _ => Ok(()),
        }
    }

    fn count(&mut self, position: Position) -> Result<(), String> {
        if position.depth > SCHEMA_DEPTH_MAX {
            return Err(format!(
                "is deeper than {SCHEMA_DEPTH_MAX}, or refers to itself in a cycle"
            ));
        }
        self.values = self.values.saturating_add(position.times);
        if self.values > SCHEMA_PARTS_MAX {
            return Err(format!(
                "has more than {SCHEMA_PARTS_MAX} parts, including those that it refers to"
            ));
        }
        self.used.values = self.used.values.saturating_add(position.times);
        if self.used.values > SCHEMA_PARTS_SUM_MAX {
            return Err(format!(
                "is too much: all schemas together have more than {SCHEMA_PARTS_SUM_MAX} parts"
            ));
        }
        Ok(())
    }

    fn keyword(&mut self, key: &str, value: &'a Value, position: Position) -> Result<(), String> {
        if DOUBLING.contains(&key) {
            return Err(unsupported(key));
        }
        match (key, value) {
            ("$ref", Value::String(text)) => self.follow(text, position)?,
            ("$schema", Value::String(text)) if !self.is_dialect(text, position) => {
                return Err(format!("has an unsupported dialect: `{}`", short(text)));
            }
            ("pattern", Value::String(_)) => self.used.patterns += 1,
            ("patternProperties", Value::Object(patterns)) => self.used.patterns += patterns.len(),
            (key, Value::String(_)) if FORBIDDEN.contains(&key) => return Err(unsupported(key)),
            _ => {}
        }
        if self.used.patterns > SCHEMA_PATTERNS_MAX {
            return Err(format!(
                "is too much: all schemas together have more than {SCHEMA_PATTERNS_MAX} patterns"
            ));
        }
        Ok(())
    }

    /// Returns whether a dialect is supported. A part of a schema can only repeat that of the full schema.
    fn is_dialect(&self, text: &str, position: Position) -> bool {
        let known = |text: &str| DIALECTS.into_iter().find(|dialect| text.contains(dialect));
        let own = known(text);
        if position.depth == 0 {
            return own.is_some();
        }
        let root = self.root.get("$schema").and_then(Value::as_str);
        own.is_some() && own == root.map_or(Some(DEFAULT_DIALECT), known)
    }

    fn follow(&mut self, reference: &str, position: Position) -> Result<(), String> {
        let inside = reference.strip_prefix('#').filter(|_| !reference.contains('%'));
        let Some(pointer) = inside.filter(|pointer| pointer.is_empty() || pointer.starts_with('/')) else {
            let reference = short(reference);
            return Err(format!("refers to `{reference}`, which is not inside the schema"));
        };
        let Some(part) = self.root.pointer(pointer) else {
            return Err(format!("refers to `{}`, which does not exist", short(reference)));
        };
        // The path may pass through data, whose keywords have not been checked.
        for (end, _) in pointer.match_indices('/') {
            let passed = self.root.pointer(&pointer[..end]).and_then(Value::as_object);
            let has_keyword = |key: &&str| passed.is_some_and(|part| part.get(*key).is_some_and(Value::is_string));
            if let Some(key) = FORBIDDEN.iter().find(|key| has_keyword(key)) {
                return Err(unsupported(key));
            }
        }
        self.schema(part, position.below())
    }
}

fn unsupported(keyword: &str) -> String {
    format!("uses `{keyword}`, which is not supported")
}

/// Returns untrusted text for an error message.
pub(super) fn short(text: &str) -> String {
    printable(text).chars().take(QUOTED_CHARS_MAX).collect()
}
