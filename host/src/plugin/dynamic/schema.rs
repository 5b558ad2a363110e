//! What a guest's schema may be, so that neither compiling it nor checking arguments against it harms the host.

use jsonschema::PatternOptions;
use serde_json::Value;

use crate::error::{Error, ErrorKind, Phase};
use crate::tool::{InputCheck, ToolDefinition, parse_json};

/// The longest schema, in bytes. Each is part of every request to a model.
const SCHEMA_BYTES_MAX: usize = 64 << 10;

/// How deep a schema may be, references followed. Models are lost long before.
const DEPTH_MAX: usize = 32;

/// How many values a schema may have, references followed: what refers to itself twice at each step doubles each time.
const VALUES_MAX: usize = 8_192;

/// How many patterns a schema may have, and how large each may become, in bytes.
const PATTERNS_MAX: usize = 64;
const PATTERN_BYTES_MAX: usize = 256 << 10;

/// Keywords that change what a reference means, or lead out.
const FORBIDDEN: [&str; 7] = [
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveRef",
    "$vocabulary",
];

/// The dialects that are known.
const DIALECTS: [&str; 3] = ["draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema"];

/// Reads a schema that a guest told. The error completes a sentence that names it.
pub(super) fn read(text: &str) -> Result<Value, String> {
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(format!("has {} bytes; at most {SCHEMA_BYTES_MAX} are read", text.len()));
    }
    let schema = parse_json(text).map_err(|error| format!("is no JSON: {error}"))?;
    let mut walk = Walk {
        root: &schema,
        values: 0,
        patterns: 0,
    };
    walk.visit(&schema, 0)?;
    Ok(schema)
}

/// Compiles a schema, or says why that cannot be. Patterns are matched in linear time.
pub(super) fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::options()
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES_MAX))
        .build(schema)
        .map_err(|error| format!("is not valid: {error}"))
}

/// Makes the check of a dynamic tool's arguments.
pub(super) fn check_of(definition: &ToolDefinition) -> Result<InputCheck, Error> {
    let validator = compile(&definition.input_schema).map_err(|why| {
        let message = format!("its input schema {why}");
        Error::new(ErrorKind::Internal, Phase::Validate, message)
    })?;
    Ok(InputCheck::with(validator))
}

/// Follows a schema into all that it refers to.
struct Walk<'a> {
    root: &'a Value,
    values: usize,
    patterns: usize,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, value: &'a Value, depth: usize) -> Result<(), String> {
        self.values += 1;
        if depth > DEPTH_MAX {
            return Err(format!("is deeper than {DEPTH_MAX}, or refers to itself in a circle"));
        }
        if self.values > VALUES_MAX {
            return Err(format!("has more than {VALUES_MAX} parts, with all that it refers to"));
        }
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(item, depth + 1)),
            Value::Object(fields) => fields.iter().try_for_each(|(key, field)| {
                self.keyword(key, field, depth)?;
                self.visit(field, depth + 1)
            }),
            _ => Ok(()),
        }
    }

    /// Looks at what would be a keyword; the name of a property has a schema and no text behind it.
    fn keyword(&mut self, key: &str, value: &'a Value, depth: usize) -> Result<(), String> {
        if key == "patternProperties" {
            self.patterns += value.as_object().map_or(0, serde_json::Map::len);
        }
        if let Some(text) = value.as_str() {
            match key {
                "$ref" => self.follow(text, depth)?,
                "$schema" if depth > 0 || !DIALECTS.iter().any(|dialect| text.contains(dialect)) => {
                    return Err(format!("is of a dialect that is not known: `{}`", short(text)));
                }
                "pattern" => self.patterns += 1,
                key if FORBIDDEN.contains(&key) => return Err(format!("uses `{key}`, which is not supported")),
                _ => {}
            }
        }
        if self.patterns > PATTERNS_MAX {
            return Err(format!("has more than {PATTERNS_MAX} patterns"));
        }
        Ok(())
    }

    fn follow(&mut self, reference: &str, depth: usize) -> Result<(), String> {
        let inside = reference.strip_prefix('#').filter(|_| !reference.contains('%'));
        let Some(pointer) = inside.filter(|pointer| pointer.is_empty() || pointer.starts_with('/')) else {
            let reference = short(reference);
            return Err(format!("refers to `{reference}`, which is no part of it"));
        };
        match self.root.pointer(pointer) {
            Some(part) => self.visit(part, depth + 1),
            None => Err(format!("refers to `{}`, which is not there", short(reference))),
        }
    }
}

fn short(text: &str) -> String {
    crate::plugin::log::printable(text).chars().take(100).collect()
}
