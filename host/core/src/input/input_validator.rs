//! Validation of arguments against the input schema of a tool.

use std::fmt::{self, Write};
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Retrieve, ValidationError, ValidationOptions, Validator};
use serde_json::{Value, json};

use super::checkable_schema::checkable;
use super::metered_value::{Metered, MeteredValue, ValidationBudget};
use super::pattern_budget::{SMALL_PATTERN_LIMITS, linear_patterns};
use crate::limits::{SCHEMA_PATTERN_BYTES_MAX, VALIDATION_STEPS_MAX};
use crate::{Arguments, Error, ErrorKind, ExceededLimit, Phase, ToolDefinition, ToolError};

/// Maximum length of one reported violation, in bytes.
const VIOLATION_TEXT_BYTES_MAX: usize = 500;

/// Maximum number of reported violations of one call. Further violations rarely add information.
const VIOLATIONS_MAX: usize = 3;

/// Maximum number of alternatives of a schema that one reported violation names.
const ALTERNATIVES_MAX: usize = 8;

/// Maximum memory of the violations that a validator collects, in bytes. The validator may collect all violations, although
/// only [`VIOLATIONS_MAX`] are reported.
const VIOLATION_BYTES_SUM_MAX: u64 = 16 << 20;

/// The estimated memory of a violation without the path of its value, in bytes.
const VIOLATION_BYTES: u64 = 1 << 10;

/// The number of JSON values of the schema that add one step to the cost of visiting an element of the arguments. A validator
/// may check the element against each value of the schema, but few of these checks read the element.
const PARTS_PER_STEP: u64 = 32;

/// The compiled size of a pattern, in bytes, with which matching costs one step for each byte of text. The cost is proportional
/// to the compiled size.
const PATTERN_BYTES_PER_STEP: u64 = 512;

/// The maximum number of backtracking steps of a pattern that cannot match in linear time.
const BACKTRACKS_MAX: usize = 100_000;

/// A compiled input schema that validates arguments.
///
/// A check makes at most three passes: one to decide, and two to describe the violations. For any schema and arguments, the
/// passes together end within [`VALIDATION_STEPS_MAX`] steps, about a second.
pub struct InputValidator {
    validator: Validator<Metered>,
    size: SchemaSize,
}

/// Whether the author of a schema is trusted.
#[derive(Clone, Copy)]
enum Trust {
    /// The schema comes from the embedding program. Its patterns may need backtracking.
    Trusted,
    /// The schema comes from a guest or a server. Its patterns must match in linear time. `format` is not checked, because the
    /// check of some formats takes long.
    Untrusted,
}

/// The properties of a schema on which the costs of a validation depend.
#[derive(Clone, Copy, Default)]
struct SchemaSize {
    /// The number of JSON values of the schema.
    parts: u64,
    /// The number of patterns of the schema.
    patterns: usize,
    /// The assumed compiled size of each pattern, in bytes: the limit with which the schema was compiled. For a trusted schema
    /// that was compiled without a limit, it is [`SCHEMA_PATTERN_BYTES_MAX`], which a pattern can exceed.
    pattern_bytes: usize,
}

impl InputValidator {
    /// Compiles the input schema of a tool of the embedding program.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the input schema is not a JSON Schema of type `object`.
    pub fn of(definition: &ToolDefinition) -> Result<Self, Error> {
        let refusal = |message: String| {
            Error::new(ErrorKind::Configuration, Phase::Validate, message).with_tool(definition.name())
        };
        if definition.input_schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(refusal("the input schema must have `\"type\": \"object\"`".to_owned()));
        }
        Self::compile(&definition.input_schema, Trust::Trusted)
            .map_err(|error| refusal(format!("the input schema is not valid: {error}")))
    }

    /// Compiles the input schema of a tool of a guest or a server. A part of the schema that cannot be checked accepts all values.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if the validator cannot be created.
    pub fn of_untrusted(definition: &ToolDefinition) -> Result<Self, Error> {
        let compiled = Self::compile(&checkable(&definition.input_schema), Trust::Untrusted).or_else(|error| {
            tracing::debug!(tool = %definition.id, %error, "the arguments of a tool are not checked");
            Self::compile(&json!({"type": "object"}), Trust::Untrusted)
        });
        compiled.map_err(|error| {
            let message = format!("the validator of arguments cannot be created: {error}");
            Error::new(ErrorKind::Internal, Phase::Validate, message)
        })
    }

    fn compile(schema: &Value, trust: Trust) -> Result<Self, ValidationError<'static>> {
        let mut size = SchemaSize::of(schema);
        let has_patterns = size.patterns > 0;
        // Without patterns, the limit has no effect.
        let with_small_limit = SMALL_PATTERN_LIMITS
            .into_iter()
            .filter(|_| has_patterns)
            .find_map(|bytes_max| {
                let validator = options(trust, Some(bytes_max)).build(schema).ok()?;
                Some((validator, bytes_max))
            });
        let (validator, pattern_bytes) = match with_small_limit {
            Some(compiled) => compiled,
            None => {
                let bytes_max = matches!(trust, Trust::Untrusted).then_some(SCHEMA_PATTERN_BYTES_MAX);
                (options(trust, bytes_max).build(schema)?, SCHEMA_PATTERN_BYTES_MAX)
            }
        };
        size.pattern_bytes = if has_patterns { pattern_bytes } else { 0 };
        Ok(Self { validator, size })
    }

    /// Validates arguments and returns them.
    ///
    /// # Errors
    /// [`ToolError::Model`] if the arguments violate the schema, or if the validation takes more than [`VALIDATION_STEPS_MAX`]
    /// steps. The message describes the first violations with their paths, unless the description takes too many steps or too much
    /// memory.
    pub fn check(&self, arguments: Arguments) -> Result<Arguments, ToolError> {
        let value = Value::Object(arguments);
        let mut budget = self.budget(u64::MAX, 0);
        let is_valid = budget.run(|| self.validator.is_valid(MeteredValue(&value)));
        match (is_valid, value) {
            (None, _) => Err(too_many_steps()),
            (Some(true), Value::Object(arguments)) => Ok(arguments),
            (Some(_), value) => Err(ToolError::invalid_arguments(self.violations(&value, budget.steps))),
        }
    }

    /// Describes the first violations of an invalid value, in at most `steps` steps.
    fn violations(&self, value: &Value, steps: u64) -> String {
        let violation_bytes = VIOLATION_BYTES + longest_path_bytes(value);
        // When the budget is used up, the validator does not stop: it still visits the full schema. Each JSON value of the schema
        // can then add a violation.
        if self.size.parts.saturating_mul(violation_bytes) > VIOLATION_BYTES_SUM_MAX {
            return "the arguments do not match the input schema; the schema and the arguments together are too large to find \
                    out where"
                .to_owned();
        }
        let pass_budget = |steps| ValidationBudget {
            steps,
            ..self.budget(VIOLATION_BYTES_SUM_MAX, violation_bytes)
        };
        let describe_one = || {
            self.validator
                .validate(MeteredValue(value))
                .err()
                .map(|error| describe(&error))
        };
        let describe_several = || {
            let errors = self.validator.iter_errors(MeteredValue(value)).take(VIOLATIONS_MAX);
            errors.map(|error| describe(&error)).collect::<Vec<_>>().join("; ")
        };
        // The validator collects all violations in the first pass, although few are described. The second pass ends at the
        // first violation, for which half of the steps usually suffice.
        let mut first_budget = pass_budget(steps / 2);
        let description = first_budget.run(describe_several).or_else(|| {
            let mut second_budget = pass_budget(steps - steps / 2 + first_budget.steps);
            second_budget.run(describe_one).flatten()
        });
        description.unwrap_or_else(|| {
            "the arguments do not match the input schema; finding out where takes too many steps or too much memory"
                .to_owned()
        })
    }

    /// Creates the budget of a pass, with all steps of a check, and with `bytes` of memory for violations. Each violation costs
    /// `violation_bytes`.
    fn budget(&self, bytes: u64, violation_bytes: u64) -> ValidationBudget {
        ValidationBudget {
            steps: VALIDATION_STEPS_MAX,
            bytes,
            element_steps: 1 + self.size.parts / PARTS_PER_STEP,
            text_steps_per_kib: 1024 * self.size.pattern_bytes as u64 / PATTERN_BYTES_PER_STEP,
            violation_bytes,
        }
    }
}

impl SchemaSize {
    fn of(schema: &Value) -> Self {
        let mut size = Self::default();
        size.count(schema);
        size
    }

    /// Counts a value of the schema and all values inside it.
    fn count(&mut self, value: &Value) {
        self.parts += 1;
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.count(item)),
            Value::Object(fields) => {
                for (key, field) in fields {
                    self.patterns += match (key.as_str(), field) {
                        ("pattern", Value::String(_)) => 1,
                        ("patternProperties", Value::Object(patterns)) => patterns.len(),
                        _ => 0,
                    };
                    self.count(field);
                }
            }
            _ => {}
        }
    }
}

fn options(trust: Trust, pattern_bytes_max: Option<usize>) -> ValidationOptions<'static, Arc<dyn Retrieve>, Metered> {
    let options = ValidationOptions::default();
    match trust {
        Trust::Trusted => {
            let patterns = PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS_MAX);
            options.with_pattern_options(match pattern_bytes_max {
                Some(bytes) => patterns.size_limit(bytes),
                None => patterns,
            })
        }
        Trust::Untrusted => {
            let patterns = linear_patterns(pattern_bytes_max.unwrap_or(SCHEMA_PATTERN_BYTES_MAX));
            options.with_pattern_options(patterns).should_validate_formats(false)
        }
    }
}

fn too_many_steps() -> ToolError {
    let message = format!(
        "checking the arguments against the input schema takes more than {VALIDATION_STEPS_MAX} steps; pass shorter arguments"
    );
    let limit = ExceededLimit::new("VALIDATION_STEPS_MAX", VALIDATION_STEPS_MAX, VALIDATION_STEPS_MAX);
    ToolError::Model(Error::new(ErrorKind::InvalidArguments, Phase::Validate, message).with_limit(limit))
}

/// Estimates the length of the longest path to a value inside this one, in bytes.
fn longest_path_bytes(value: &Value) -> u64 {
    const INDEX_BYTES: u64 = 8;
    match value {
        Value::Array(items) => items.iter().map(longest_path_bytes).max().unwrap_or(0) + INDEX_BYTES,
        Value::Object(fields) => {
            let paths = fields
                .iter()
                .map(|(name, field)| 1 + name.len() as u64 + longest_path_bytes(field));
            paths.max().unwrap_or(0)
        }
        _ => 0,
    }
}

/// Describes a violation with the path of its value. The text is cut, because it quotes the value, which may be large.
fn describe(error: &ValidationError<'_>) -> String {
    let mut text = LimitedText(String::new());
    let path = error.instance_path().as_str();
    // Writing fails if the text is cut; the error is ignored.
    let _: fmt::Result = (|| {
        if !path.is_empty() {
            write!(text, "{path}: ")?;
        }
        match error.kind() {
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                describe_alternatives(&mut text, context)
            }
            _ => write!(text, "{error}"),
        }
    })();
    text.0
}

/// Describes why no alternative of a schema matches: with the first violation of each.
fn describe_alternatives(text: &mut LimitedText, alternatives: &[Vec<ValidationError<'static>>]) -> fmt::Result {
    write!(text, "none of the {} alternatives matches", alternatives.len())?;
    let first_violations = alternatives.iter().enumerate();
    for (index, violations) in first_violations.take(ALTERNATIVES_MAX) {
        if let Some(violation) = violations.first() {
            let separator = if index == 0 { ": " } else { ", or " };
            write!(text, "{separator}{violation}")?;
        }
    }
    Ok(())
}

/// A text of at most [`VIOLATION_TEXT_BYTES_MAX`] bytes. Writing fails when the text is full.
struct LimitedText(String);

impl Write for LimitedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = VIOLATION_TEXT_BYTES_MAX.saturating_sub(self.0.len());
        let prefix = &text[..text.floor_char_boundary(room)];
        self.0.push_str(prefix);
        if prefix.len() == text.len() {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}

#[cfg(test)]
mod tests;
