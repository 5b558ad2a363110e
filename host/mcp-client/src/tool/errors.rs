//! Failed requests as errors of a tool.

use rmcp::model::ErrorCode;

use crate::failure::{login_required, quoted};
use crate::session::RequestError;
use toolwit_core::{Error, ErrorKind, Phase, ToolError, ToolResult};

/// The notice of a call that may have taken effect.
const MAYBE_DONE: &str = "it may have taken effect";

/// Returns the outcome of a call whose request failed. An error of the server is a result of the tool: the model can react to
/// it. Refused arguments and every other failure are errors.
pub(super) fn failed_outcome(error: RequestError, tool: &str) -> Result<ToolResult, ToolError> {
    if let RequestError::LoginRequired(required, why) = error {
        return Err(unusable_server(&login_required(required, &why), tool));
    }
    let (kind, message) = match &error {
        RequestError::Refused(refusal) if refusal.code == ErrorCode::INVALID_PARAMS => {
            let message = format!("the server refused the arguments: {}", quoted(&refusal.message));
            (ErrorKind::InvalidArguments, message)
        }
        RequestError::Refused(refusal) => return Ok(ToolResult::error(quoted(&refusal.message))),
        RequestError::SessionLost | RequestError::Failed(_) | RequestError::LoginRequired(..) => {
            (ErrorKind::ToolUnavailable, error.to_string())
        }
        RequestError::Closed(_) => (ErrorKind::ToolUnavailable, format!("{error}; {MAYBE_DONE}")),
        RequestError::Timeout(_) | RequestError::NoInput(_) => (ErrorKind::Timeout, format!("{error}; {MAYBE_DONE}")),
        RequestError::Cancelled => (ErrorKind::Cancelled, format!("{error}; {MAYBE_DONE}")),
        RequestError::TooManyRounds | RequestError::Unexpected => (ErrorKind::Tool, error.to_string()),
    };
    Err(ToolError::Model(
        Error::new(kind, Phase::Execute, message).with_tool(tool),
    ))
}

/// Returns the error of a call whose server cannot be used. The conversation continues without the server.
pub(super) fn unusable_server(error: &Error, tool: &str) -> ToolError {
    let unusable = Error::new(ErrorKind::ToolUnavailable, Phase::Execute, error.message.clone())
        .with_tool(tool)
        .with_log(error.log.clone())
        .with_source(error.clone());
    ToolError::Model(match &error.suggestion {
        Some(suggestion) => unusable.with_suggestion(suggestion.clone()),
        None => unusable,
    })
}
