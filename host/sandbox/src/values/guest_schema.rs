//! What a guest's schema may be, so that neither compiling it nor checking arguments against it harms the host.

use jsonschema::PatternOptions;
use serde_json::{Map, Value};

use toolwit_core::text::parse_json;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{InputValidator, ToolDefinition};

/// The longest schema, in bytes. Each is part of every request to a model.
const SCHEMA_BYTES_MAX: usize = 64 << 10;

/// How deep a schema may be, references followed. Models are lost long before.
const DEPTH_MAX: usize = 32;

/// How many values a schema may have, references followed: what refers to itself twice at each step doubles each time.
const VALUES_MAX: usize = 8_192;

/// How many values all schemas of one answer may have: 256 tools of 250 values each.
const VALUES_SUM_MAX: usize = 64 << 10;

/// How many patterns all schemas of one answer may have, and how large each may become, in bytes: 64 MiB in all.
const PATTERNS_MAX: usize = 256;
const PATTERN_BYTES_MAX: usize = 256 << 10;

/// How many times a schema behind a pattern may be compiled: for `additionalProperties` beside it, for patterns that are plain
/// text, and for all of them when one is not.
const PATTERN_TIMES: usize = 3;

/// How much of a text that a guest chose is told, in characters.
const TOLD_CHARS_MAX: usize = 200;

/// Keywords whose text changes what a reference means, or leads out.
const FORBIDDEN: [&str; 7] = [
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveRef",
    "$vocabulary",
];

/// Keywords that look at the other keywords beside them once more: nested, they double the work at each step.
const DOUBLING: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// Keywords whose fields are names of the author's, each with a schema behind it.
const NAMING: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];

/// Keywords with data behind them, which mean nothing.
const DATA: [&str; 5] = ["examples", "example", "default", "const", "enum"];

/// The dialects that are known.
const DIALECTS: [&str; 3] = ["draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema"];

/// What the schemas of one answer took so far.
#[derive(Default)]
pub(crate) struct Spent {
    values: usize,
    patterns: usize,
}

/// Reads a schema that a guest told. The error completes a sentence that names it.
pub(crate) fn read(text: &str, spent: &mut Spent) -> Result<Value, String> {
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(format!("has {} bytes; at most {SCHEMA_BYTES_MAX} are read", text.len()));
    }
    let schema = parse_json(text).map_err(|error| format!("is no JSON: {}", short(&error.to_string())))?;
    let mut walk = Walk {
        root: &schema,
        values: 0,
        spent,
    };
    walk.schema(&schema, Place::ROOT)?;
    Ok(schema)
}

/// Compiles a schema, or says why that cannot be. Patterns are matched in linear time.
pub(crate) fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::options()
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES_MAX))
        .build(schema)
        .map_err(|error| format!("is not valid: {}", short(&error.to_string())))
}

/// Makes the check of a dynamic tool's arguments.
pub(crate) fn check_of(definition: &ToolDefinition) -> Result<InputValidator, Error> {
    let validator = compile(&definition.input_schema).map_err(|why| {
        let message = format!("its input schema {why}");
        Error::new(ErrorKind::Internal, Phase::Validate, message)
    })?;
    Ok(InputValidator::with(validator))
}

/// Follows a schema into all that it refers to.
struct Walk<'a> {
    root: &'a Value,
    values: usize,
    spent: &'a mut Spent,
}

/// Where a value stands.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    /// How many times it is compiled.
    times: usize,
}

impl Place {
    const ROOT: Self = Self { depth: 0, times: 1 };

    fn below(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }
}

impl<'a> Walk<'a> {
    /// Visits what is a schema, or may be taken for one by a reference.
    fn schema(&mut self, value: &'a Value, place: Place) -> Result<(), String> {
        self.count(place)?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.schema(item, place.below())),
            Value::Object(fields) => fields.iter().try_for_each(|(key, field)| {
                self.keyword(key, field, place)?;
                match field {
                    Value::Object(named) if NAMING.contains(&key.as_str()) => self.named(key, named, place.below()),
                    field if DATA.contains(&key.as_str()) => self.data(field, place.below()),
                    field => self.schema(field, place.below()),
                }
            }),
            _ => Ok(()),
        }
    }

    /// Visits schemas that have names.
    fn named(&mut self, keyword: &str, named: &'a Map<String, Value>, place: Place) -> Result<(), String> {
        self.count(place)?;
        let times = match keyword {
            "patternProperties" => PATTERN_TIMES,
            _ => 1,
        };
        let place = Place {
            times: place.times.saturating_mul(times),
            ..place.below()
        };
        named.values().try_for_each(|schema| self.schema(schema, place))
    }

    /// Visits what is only passed on.
    fn data(&mut self, value: &'a Value, place: Place) -> Result<(), String> {
        self.count(place)?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.data(item, place.below())),
            Value::Object(fields) => fields.values().try_for_each(|field| self.data(field, place.below())),
            _ => Ok(()),
        }
    }

    fn count(&mut self, place: Place) -> Result<(), String> {
        if place.depth > DEPTH_MAX {
            return Err(format!("is deeper than {DEPTH_MAX}, or refers to itself in a circle"));
        }
        self.values = self.values.saturating_add(place.times);
        if self.values > VALUES_MAX {
            return Err(format!("has more than {VALUES_MAX} parts, with all that it refers to"));
        }
        self.spent.values = self.spent.values.saturating_add(place.times);
        if self.spent.values > VALUES_SUM_MAX {
            return Err(format!(
                "is too much: all schemas together have more than {VALUES_SUM_MAX} parts"
            ));
        }
        Ok(())
    }

    fn keyword(&mut self, key: &str, value: &'a Value, place: Place) -> Result<(), String> {
        if DOUBLING.contains(&key) {
            return Err(unsupported(key));
        }
        match (key, value) {
            ("$ref", Value::String(text)) => self.follow(text, place)?,
            ("$schema", Value::String(text))
                if place.depth > 0 || !DIALECTS.iter().any(|dialect| text.contains(dialect)) =>
            {
                return Err(format!("is of a dialect that is not known: `{}`", short(text)));
            }
            ("pattern", Value::String(_)) => self.spent.patterns += 1,
            ("patternProperties", Value::Object(patterns)) => self.spent.patterns += patterns.len(),
            (key, Value::String(_)) if FORBIDDEN.contains(&key) => return Err(unsupported(key)),
            _ => {}
        }
        if self.spent.patterns > PATTERNS_MAX {
            return Err(format!(
                "is too much: all schemas together have more than {PATTERNS_MAX} patterns"
            ));
        }
        Ok(())
    }

    fn follow(&mut self, reference: &str, place: Place) -> Result<(), String> {
        let inside = reference.strip_prefix('#').filter(|_| !reference.contains('%'));
        let Some(pointer) = inside.filter(|pointer| pointer.is_empty() || pointer.starts_with('/')) else {
            let reference = short(reference);
            return Err(format!("refers to `{reference}`, which is no part of it"));
        };
        let Some(part) = self.root.pointer(pointer) else {
            return Err(format!("refers to `{}`, which is not there", short(reference)));
        };
        // On the way there may be data, in which no keyword was looked at.
        for (end, _) in pointer.match_indices('/') {
            let on_the_way = self.root.pointer(&pointer[..end]).and_then(Value::as_object);
            let leads_away = |key: &&str| on_the_way.is_some_and(|part| part.get(*key).is_some_and(Value::is_string));
            if let Some(key) = FORBIDDEN.iter().find(|key| leads_away(key)) {
                return Err(unsupported(key));
            }
        }
        self.schema(part, place.below())
    }
}

fn unsupported(keyword: &str) -> String {
    format!("uses `{keyword}`, which is not supported")
}

fn short(text: &str) -> String {
    toolwit_core::text::printable(text)
        .chars()
        .take(TOLD_CHARS_MAX)
        .collect()
}
