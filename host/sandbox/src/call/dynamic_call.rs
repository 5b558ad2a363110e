//! A call of a dynamic tool: into the interface's one function, and back.

use std::sync::OnceLock;

use serde_json::Value;

use crate::values::guest_schema::check_of;
use toolwit_core::text::printable;
use toolwit_core::{Arguments, InputValidator, ToolDefinition, ToolError, ToolResult};
use toolwit_core::{Error, ErrorKind, Phase};

/// How much of a failed tool's own words is told, in characters. They are an error's message, not a result that can be read on.
const REASON_CHARS_MAX: usize = 2_000;

/// How a dynamic tool is called.
#[derive(Default)]
pub(crate) struct DynamicCall {
    /// Made with the first call: most tools are never called.
    check: OnceLock<Result<InputValidator, Error>>,
}

impl DynamicCall {
    /// Checks arguments against the schema that the guest told, and makes those of `dynamic.call` of them.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`].
    pub(crate) fn arguments(&self, definition: &ToolDefinition, arguments: Arguments) -> Result<Arguments, Error> {
        let check = self.check.get_or_init(|| check_of(definition)).as_ref();
        let checked = check.map_err(Error::clone)?.check(arguments);
        let arguments = Value::Object(checked.map_err(|error| match error {
            ToolError::Model(error) | ToolError::Operator(error) => error,
        })?);
        // The host made the id, and no name holds the sign that ends it.
        let name = definition.id.as_str().rsplit('#').next().unwrap_or_default();
        Ok(Arguments::from_iter([
            ("name".to_owned(), name.into()),
            ("arguments".to_owned(), arguments.to_string().into()),
        ]))
    }
}

/// Takes a `tool-error` for what it says. What ran and failed is an answer, as it is of any tool.
///
/// # Errors
/// The kind that the guest named.
pub(crate) fn answered(result: ToolResult) -> Result<ToolResult, Error> {
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
        text if text.trim().is_empty() => "the tool says no more than that".to_owned(),
        text => text,
    };
    Err(Error::new(kind, Phase::Execute, message))
}

/// Reads a variant from its JSON.
fn case_of(value: &Value) -> Option<(&str, &str)> {
    let (case, text) = value.as_object()?.iter().next()?;
    Some((case, text.as_str()?))
}
