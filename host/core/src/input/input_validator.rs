//! Validation of arguments against the input schema of a tool.

use serde_json::Value;

use crate::{Arguments, Error, ErrorKind, Phase, ToolDefinition, ToolError};

/// Maximum length of one reported violation, in characters.
const VIOLATION_CHARS_MAX: usize = 500;

/// Maximum number of reported violations of one call. Further violations rarely add information.
const VIOLATIONS_MAX: usize = 3;

/// A compiled input schema that validates arguments.
pub struct InputValidator {
    validator: jsonschema::Validator,
}

impl InputValidator {
    /// Compiles the input schema of a definition.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if it is not a JSON Schema of type `object`.
    pub fn of(definition: &ToolDefinition) -> Result<Self, Error> {
        let refused = |message: String| {
            Error::new(ErrorKind::Configuration, Phase::Validate, message).with_tool(definition.name())
        };
        if definition.input_schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(refused("the input schema must have `\"type\": \"object\"`".to_owned()));
        }
        let validator = jsonschema::validator_for(&definition.input_schema)
            .map_err(|error| refused(format!("the input schema is not valid: {error}")))?;
        Ok(Self { validator })
    }

    /// Wraps a schema that is already compiled.
    pub fn with(validator: jsonschema::Validator) -> Self {
        Self { validator }
    }

    /// Validates arguments and returns them.
    ///
    /// # Errors
    /// [`ToolError::Model`] with the path of each violation.
    pub fn check(&self, arguments: Arguments) -> Result<Arguments, ToolError> {
        let value = Value::Object(arguments);
        let violations: Vec<_> = self
            .validator
            .iter_errors(&value)
            .take(VIOLATIONS_MAX)
            .map(|error| match error.instance_path().to_string().as_str() {
                "" => error.to_string(),
                path => format!("{path}: {error}"),
            })
            // The text quotes the invalid value, which may be large.
            .map(|violation| violation.chars().take(VIOLATION_CHARS_MAX).collect::<String>())
            .collect();
        match value {
            Value::Object(arguments) if violations.is_empty() => Ok(arguments),
            _ => Err(ToolError::invalid_arguments(violations.join("; "))),
        }
    }
}
