//! Parts of a call of a dynamic tool: the validation and conversion of its arguments, and the conversion of its error.

use std::sync::OnceLock;

use serde_json::Value;

use toolwit_core::text::printable;
use toolwit_core::{Arguments, InputValidator, ToolDefinition, ToolError, ToolResult};
use toolwit_core::{Error, ErrorKind, Phase};

/// The maximum length of a guest's error message, in characters. Unlike a result, an error cannot be read in parts.
const REASON_CHARS_MAX: usize = 2_000;

/// Validates the arguments of a dynamic tool against its schema.
#[derive(Default)]
pub(crate) struct DynamicValidator {
    /// The compiled schema. The first call compiles it, because most tools are never called.
    validator: OnceLock<Result<InputValidator, Error>>,
}

impl DynamicValidator {
    /// Validates arguments against the schema of the tool.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`], and [`ErrorKind::Internal`] if the schema cannot be compiled.
    pub(crate) fn check(&self, definition: &ToolDefinition, arguments: Arguments) -> Result<Arguments, Error> {
        let validator = self
            .validator
            .get_or_init(|| InputValidator::of_untrusted(definition))
            .as_ref();
        let checked = validator.map_err(Error::clone)?.check(arguments);
        checked.map_err(|error| match error {
            ToolError::Model(error) | ToolError::Operator(error) => error,
        })
    }
}

/// Returns the name under which a component listed a dynamic tool.
pub(super) fn listed_name(definition: &ToolDefinition) -> &str {
    // The host created the id, in which the name follows `#`. A name cannot contain `#`.
    definition.id.as_str().rsplit('#').next().unwrap_or_default()
}

/// Converts the arguments of a dynamic tool to those of `dynamic.call`.
pub(super) fn call_arguments(definition: &ToolDefinition, arguments: Arguments) -> Arguments {
    Arguments::from_iter([
        ("name".to_owned(), listed_name(definition).into()),
        ("arguments".to_owned(), Value::Object(arguments).to_string().into()),
    ])
}

/// Converts a result that contains a `tool-error` of the guest. The case `failed` remains an error result, like the failure of
/// any other tool. Every other result is returned unchanged.
///
/// # Errors
/// The error kind of each other case of `tool-error`.
pub(super) fn convert_tool_error(result: ToolResult) -> Result<ToolResult, Error> {
    let Some((case, text)) = result.value.as_ref().filter(|_| result.is_error()).and_then(case_of) else {
        return Ok(result);
    };
    let kind = match case {
        "invalid_arguments" => ErrorKind::InvalidArguments,
        "unavailable" => ErrorKind::ToolUnavailable,
        "denied" => ErrorKind::Denied,
        "limit" => ErrorKind::Busy,
        _ => {
            let mut failed = result.clone();
            failed.for_llm = text.to_owned();
            failed.value = Some(text.into());
            return Ok(failed);
        }
    };
    let message: String = printable(text).chars().take(REASON_CHARS_MAX).collect();
    let message = match message {
        message if message.trim().is_empty() => "the tool gave no reason".to_owned(),
        message => message,
    };
    Err(Error::new(kind, Phase::Execute, message))
}

/// Returns the case and the text of a variant from its JSON, or `None` if the case does not have a text.
fn case_of(value: &Value) -> Option<(&str, &str)> {
    let (case, text) = value.as_object()?.iter().next()?;
    Some((case, text.as_str()?))
}
