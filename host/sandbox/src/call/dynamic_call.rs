//! Helpers for calls of dynamic tools: they validate and convert the arguments, and convert the error of the guest.

use std::sync::OnceLock;

use serde_json::Value;

use toolwit_core::text::printable;
use toolwit_core::{Arguments, InputValidator, ToolDefinition, ToolError, ToolResult};
use toolwit_core::{Error, ErrorKind, Phase};

/// The maximum length of a guest's error message, in characters. Longer messages are cut.
const MESSAGE_CHARS_MAX: usize = 2_000;

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
        let result = validator.map_err(Error::clone)?.check(arguments);
        result.map_err(|error| match error {
            ToolError::Model(error) | ToolError::Operator(error) => error,
        })
    }
}

/// Returns the name under which a component listed a dynamic tool.
pub(super) fn listed_name(definition: &ToolDefinition) -> &str {
    // The host creates the id of a dynamic tool so that the name follows `#`. A name cannot contain `#`.
    definition.id.as_str().rsplit('#').next().unwrap_or_default()
}

/// Converts the arguments of a dynamic tool to the arguments of `call` in `toolwit:plugin/dynamic`.
pub(super) fn call_arguments(definition: &ToolDefinition, arguments: Arguments) -> Arguments {
    Arguments::from_iter([
        ("name".to_owned(), listed_name(definition).into()),
        ("arguments".to_owned(), Value::Object(arguments).to_string().into()),
    ])
}

/// Converts an error result that contains a `tool-error` of the guest. The case `failed` remains an error result, as for any other
/// tool that fails. A result without a `tool-error` is returned unchanged.
///
/// # Errors
/// The cases `invalid-arguments`, `unavailable`, `denied` and `limit` of `tool-error` become errors.
pub(super) fn convert_tool_error(result: ToolResult) -> Result<ToolResult, Error> {
    let Some((case, text)) = result
        .value
        .as_ref()
        .filter(|_| result.is_error())
        .and_then(case_and_text)
    else {
        return Ok(result);
    };
    let kind = match case {
        "invalid_arguments" => ErrorKind::InvalidArguments,
        "unavailable" => ErrorKind::ToolUnavailable,
        "denied" => ErrorKind::Denied,
        "limit" => ErrorKind::Busy,
        // The case `failed`.
        _ => {
            let mut failed = result.clone();
            failed.for_llm = text.to_owned();
            failed.value = Some(text.into());
            return Ok(failed);
        }
    };
    let message: String = printable(text).chars().take(MESSAGE_CHARS_MAX).collect();
    let message = match message {
        message if message.trim().is_empty() => "the tool gave no reason".to_owned(),
        message => message,
    };
    Err(Error::new(kind, Phase::Execute, message))
}

/// Returns the name of the case and the text of a variant from its JSON. Returns `None` if the payload of the case is not a text.
fn case_and_text(value: &Value) -> Option<(&str, &str)> {
    let (case, text) = value.as_object()?.iter().next()?;
    Some((case, text.as_str()?))
}
