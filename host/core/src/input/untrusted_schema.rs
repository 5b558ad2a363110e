//! Restricts the schemas of guests and servers, so that compiling them takes limited time and memory.

use serde_json::{Map, Value};

use super::input_validator::InputValidator;
use crate::limits::{
    SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_PARTS_MAX, SCHEMA_PARTS_SUM_MAX, SCHEMA_PATTERN_BYTES_SUM_MAX,
    SCHEMA_PATTERNS_MAX,
};
use crate::text::{parse_json, printable};

/// The maximum number of times that `jsonschema` compiles a schema under `patternProperties`: once for an adjacent
/// `additionalProperties`, once if its pattern is plain text, and once if any pattern is not plain text.
const PATTERN_PROPERTY_COMPILATIONS_MAX: usize = 3;

/// The maximum length of untrusted text in an error message, in characters.
const QUOTED_CHARS_MAX: usize = 200;

/// Keywords that change how references are resolved, or refer to other documents. They are rejected if their value is a string.
const FORBIDDEN_KEYWORDS: [&str; 7] = [
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveRef",
    "$vocabulary",
];

/// Keywords that evaluate the adjacent keywords again. They are always rejected, because each nested level doubles the work.
const DOUBLING_KEYWORDS: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// Keywords with named schemas: the value is an object with arbitrary names, and each name has a schema.
const NAMED_SCHEMA_KEYWORDS: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];

/// Keywords whose values are data, not schemas.
const DATA_KEYWORDS: [&str; 5] = ["examples", "example", "default", "const", "enum"];

/// The supported dialects of JSON Schema.
const DIALECTS: [&str; 3] = ["draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema"];

/// The dialect of a schema that does not name one.
const DEFAULT_DIALECT: &str = DIALECTS[2];

/// A reader of the schemas of an untrusted component, or of a group of tools of an untrusted server. Some limits apply to all
/// these schemas together.
#[derive(Debug, Default)]
pub struct UntrustedSchemas {
    /// The number of JSON values of all schemas, including those to which references lead.
    values: usize,
    /// The number of patterns of all schemas.
    patterns: usize,
    /// An upper limit of the compiled size of all patterns, in bytes.
    pattern_bytes: usize,
}

impl UntrustedSchemas {
    /// Parses a schema and checks its limits. [`InputValidator::of_untrusted`] can then compile the schema.
    ///
    /// # Errors
    /// The reason, as the end of a sentence that begins with "the schema".
    pub fn read(&mut self, text: &str) -> Result<Value, String> {
        if text.len() > SCHEMA_BYTES_MAX {
            return Err(format!("has {} bytes; at most {SCHEMA_BYTES_MAX} are read", text.len()));
        }
        let schema = parse_json(text).map_err(|error| format!("is not JSON: {}", excerpt(&error.to_string())))?;
        let mut walk = SchemaWalk {
            root: &schema,
            values: 0,
            all_schemas: self,
        };
        walk.visit_schema(&schema, Position::ROOT)?;
        let pattern_bytes = InputValidator::total_pattern_bytes(&schema)
            .map_err(|error| format!("is not valid: {}", excerpt(&error.to_string())))?;
        self.pattern_bytes = self.pattern_bytes.saturating_add(pattern_bytes);
        if self.pattern_bytes > SCHEMA_PATTERN_BYTES_SUM_MAX {
            return Err(format!(
                "exceeds a shared limit: the patterns of all schemas have more than {SCHEMA_PATTERN_BYTES_SUM_MAX} bytes in compiled form"
            ));
        }
        Ok(schema)
    }
}

/// Visits a schema and all schemas that it refers to.
struct SchemaWalk<'a> {
    root: &'a Value,
    /// The number of JSON values that were visited. Each counts as often as `jsonschema` may compile it.
    values: usize,
    /// The counts of all schemas, this one included.
    all_schemas: &'a mut UntrustedSchemas,
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

impl<'a> SchemaWalk<'a> {
    /// Visits a value that is a schema, or that a reference may use as one.
    fn visit_schema(&mut self, value: &'a Value, position: Position) -> Result<(), String> {
        self.count_value(position)?;
        match value {
            Value::Array(items) => items
                .iter()
                .try_for_each(|item| self.visit_schema(item, position.below())),
            Value::Object(fields) => fields.iter().try_for_each(|(key, field)| {
                self.check_keyword(key, field, position)?;
                match field {
                    Value::Object(schemas) if NAMED_SCHEMA_KEYWORDS.contains(&key.as_str()) => {
                        self.visit_named_schemas(key, schemas, position.below())
                    }
                    field if DATA_KEYWORDS.contains(&key.as_str()) => self.visit_data(field, position.below()),
                    field => self.visit_schema(field, position.below()),
                }
            }),
            _ => Ok(()),
        }
    }

    /// Visits the named schemas of one of the [`NAMED_SCHEMA_KEYWORDS`].
    fn visit_named_schemas(
        &mut self,
        keyword: &str,
        schemas: &'a Map<String, Value>,
        position: Position,
    ) -> Result<(), String> {
        self.count_value(position)?;
        let factor = match keyword {
            "patternProperties" => PATTERN_PROPERTY_COMPILATIONS_MAX,
            _ => 1,
        };
        let position = Position {
            compilations_max: position.compilations_max.saturating_mul(factor),
            ..position.below()
        };
        schemas
            .values()
            .try_for_each(|schema| self.visit_schema(schema, position))
    }

    /// Visits data, which is counted but not interpreted.
    fn visit_data(&mut self, value: &'a Value, position: Position) -> Result<(), String> {
        self.count_value(position)?;
        match value {
            Value::Array(items) => items
                .iter()
                .try_for_each(|item| self.visit_data(item, position.below())),
            Value::Object(fields) => fields
                .values()
                .try_for_each(|field| self.visit_data(field, position.below())),
            _ => Ok(()),
        }
    }

    /// Counts a value, and checks its depth and the limits of the number of values.
    fn count_value(&mut self, position: Position) -> Result<(), String> {
        if position.depth > SCHEMA_DEPTH_MAX {
            return Err(format!(
                "is deeper than {SCHEMA_DEPTH_MAX}, or refers to itself in a cycle"
            ));
        }
        self.values = self.values.saturating_add(position.compilations_max);
        if self.values > SCHEMA_PARTS_MAX {
            return Err(format!(
                "has more than {SCHEMA_PARTS_MAX} JSON values, including those that it refers to"
            ));
        }
        self.all_schemas.values = self.all_schemas.values.saturating_add(position.compilations_max);
        if self.all_schemas.values > SCHEMA_PARTS_SUM_MAX {
            return Err(format!(
                "exceeds a shared limit: all schemas together have more than {SCHEMA_PARTS_SUM_MAX} JSON values"
            ));
        }
        Ok(())
    }

    /// Checks a keyword, and visits the schema to which a `$ref` refers.
    fn check_keyword(&mut self, key: &str, value: &'a Value, position: Position) -> Result<(), String> {
        if DOUBLING_KEYWORDS.contains(&key) {
            return Err(unsupported(key));
        }
        match (key, value) {
            ("$ref", Value::String(text)) => self.visit_reference(text, position)?,
            ("$schema", Value::String(text)) if !self.is_supported_dialect(text, position) => {
                return Err(format!("has an unsupported dialect: `{}`", excerpt(text)));
            }
            ("pattern", Value::String(_)) => self.all_schemas.patterns += 1,
            ("patternProperties", Value::Object(patterns)) => self.all_schemas.patterns += patterns.len(),
            (key, Value::String(_)) if FORBIDDEN_KEYWORDS.contains(&key) => return Err(unsupported(key)),
            _ => {}
        }
        if self.all_schemas.patterns > SCHEMA_PATTERNS_MAX {
            return Err(format!(
                "exceeds a shared limit: all schemas together have more than {SCHEMA_PATTERNS_MAX} patterns"
            ));
        }
        Ok(())
    }

    /// Returns whether the dialect that a `$schema` names is supported. A `$schema` below the root must name the dialect of the
    /// root.
    fn is_supported_dialect(&self, text: &str, position: Position) -> bool {
        let find_dialect = |text: &str| DIALECTS.into_iter().find(|supported| text.contains(supported));
        let dialect = find_dialect(text);
        if position.depth == 0 {
            return dialect.is_some();
        }
        let root_schema = self.root.get("$schema").and_then(Value::as_str);
        dialect.is_some() && dialect == root_schema.map_or(Some(DEFAULT_DIALECT), find_dialect)
    }

    /// Visits the schema to which a reference refers. A reference to another document is an error.
    fn visit_reference(&mut self, reference: &str, position: Position) -> Result<(), String> {
        let fragment = reference.strip_prefix('#').filter(|_| !reference.contains('%'));
        let Some(pointer) = fragment.filter(|pointer| pointer.is_empty() || pointer.starts_with('/')) else {
            let reference = excerpt(reference);
            return Err(format!("refers to `{reference}`, which is not inside the schema"));
        };
        let Some(target) = self.root.pointer(pointer) else {
            return Err(format!("refers to `{}`, which does not exist", excerpt(reference)));
        };
        // The pointer may lead through data, in which `visit_data` does not check keywords.
        for (end, _) in pointer.match_indices('/') {
            let ancestor = self.root.pointer(&pointer[..end]).and_then(Value::as_object);
            let has_keyword =
                |key: &&str| ancestor.is_some_and(|fields| fields.get(*key).is_some_and(Value::is_string));
            if let Some(key) = FORBIDDEN_KEYWORDS.iter().find(|key| has_keyword(key)) {
                return Err(unsupported(key));
            }
        }
        self.visit_schema(target, position.below())
    }
}

fn unsupported(keyword: &str) -> String {
    format!("uses `{keyword}`, which is not supported")
}

/// Returns the beginning of untrusted text, in printable form, for an error message.
pub(super) fn excerpt(text: &str) -> String {
    printable(text).chars().take(QUOTED_CHARS_MAX).collect()
}
