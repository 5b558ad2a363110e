//! Protocol errors, and tool results for failed calls.

use rmcp::ErrorData;
use rmcp::model::CallToolResult;

use super::result::text_block;
use toolwit::{Error, ErrorKind};

/// Returns the protocol error for invalid parameters.
pub(crate) fn invalid_params(message: impl Into<String>) -> ErrorData {
    ErrorData::invalid_params(message.into(), None)
}

/// Returns the protocol error for a failure of the server. The cause is logged, and not sent to the client.
pub(crate) fn internal_error(error: &Error) -> ErrorData {
    tracing::error!(%error, "the server failed");
    ErrorData::internal_error("the server failed; its log has the reason", None)
}

/// Converts the error of a call that did not run to a tool result, which the model reads.
///
/// # Errors
/// The protocol error, if the tool is unknown.
pub(crate) fn call_error(error: &Error) -> Result<CallToolResult, ErrorData> {
    let text = match &error.suggestion {
        Some(suggestion) => format!("{}; {suggestion}", error.message),
        None => error.message.clone(),
    };
    match error.kind {
        ErrorKind::UnknownTool => Err(invalid_params(text)),
        _ => Ok(CallToolResult::error(vec![text_block(text)])),
    }
}
