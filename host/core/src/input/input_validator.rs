//! Whether arguments fit a tool's schema.

use serde_json::Value;

use crate::{Arguments, Error, ErrorKind, Phase, ToolDefinition, ToolError};

/// How much of each is told, in characters.
const COMPLAINT_CHARS_MAX: usize = 500;

/// How many complaints about one call's arguments are told; the rest repeats them.
const COMPLAINTS_MAX: usize = 3;

/// A tool's input schema, ready to check arguments.
pub struct InputValidator {
    validator: jsonschema::Validator,
}

impl InputValidator {
    /// Reads the input schema of a definition.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when it is no JSON Schema of an object.
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

    /// Checks arguments by a schema that was read elsewhere.
    pub fn with(validator: jsonschema::Validator) -> Self {
        Self { validator }
    }

    /// Passes arguments that fit.
    ///
    /// # Errors
    /// [`ToolError::Model`] with the path of what does not.
    pub fn check(&self, arguments: Arguments) -> Result<Arguments, ToolError> {
        let value = Value::Object(arguments);
        let told: Vec<_> = self
            .validator
            .iter_errors(&value)
            .take(COMPLAINTS_MAX)
            .map(|error| match error.instance_path().to_string().as_str() {
                "" => error.to_string(),
                path => format!("{path}: {error}"),
            })
            // It shows the value that does not fit, whatever its size.
            .map(|told| told.chars().take(COMPLAINT_CHARS_MAX).collect::<String>())
            .collect();
        match value {
            Value::Object(arguments) if told.is_empty() => Ok(arguments),
            _ => Err(ToolError::invalid_arguments(told.join("; "))),
        }
    }
}
