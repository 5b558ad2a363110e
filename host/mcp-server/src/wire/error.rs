//! Errors of the protocol.

use rmcp::ErrorData;
use rmcp::model::CallToolResult;

use super::result::text_block;
use toolwit::{Error, ErrorKind};

/// Returns the error for parameters that are invalid.
pub(crate) fn invalid_params(message: impl Into<String>) -> ErrorData {
    ErrorData::invalid_params(message.into(), None)
}

/// Returns the error for a failure of the server. The cause is logged, and not sent.
pub(crate) fn internal(error: &Error) -> ErrorData {
    tracing::error!(%error, "the server failed");
    ErrorData::internal_error("the server failed; its log has the reason", None)
}

/// Returns the answer to a call that did not run: a protocol error for an unknown tool, otherwise a result that the
/// model reads.
///
/// # Errors
/// If no tool has the name.
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
