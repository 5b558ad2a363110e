//! Converts failed requests to results and errors of a tool.

use rmcp::model::ErrorCode;

use crate::failure::{login_required, quoted};
use crate::session::RequestError;
use toolwit_core::{Error, ErrorKind, Phase, ToolError, ToolResult};

/// The notice that a call may have taken effect.
const EFFECT_NOTICE: &str = "it may have taken effect";

/// Returns the result of a call whose request failed. If the server answered with an error, the call has a failed
/// [`ToolResult`] with this error, to which the model can react. Invalid arguments and all other failures are a
/// [`ToolError`].
pub(super) fn failed_call_result(error: RequestError, tool: &str) -> Result<ToolResult, ToolError> {
    if let RequestError::LoginRequired(required, why) = error {
        return Err(unusable_server_error(&login_required(required, &why), tool));
    }
    let (kind, message) = match &error {
        RequestError::Refused(refusal) if refusal.code == ErrorCode::INVALID_PARAMS => {
            let message = format!("the server refused the arguments: {}", quoted(&refusal.message));
            (ErrorKind::InvalidArguments, message)
        }
        RequestError::Refused(refusal) => return Ok(ToolResult::error(quoted(&refusal.message))),
        RequestError::SessionLost | RequestError::NotProcessed(_) | RequestError::LoginRequired(..) => {
            (ErrorKind::ToolUnavailable, error.to_string())
        }
        RequestError::Failed(_) | RequestError::Closed(_) => {
            (ErrorKind::ToolUnavailable, format!("{error}; {EFFECT_NOTICE}"))
        }
        RequestError::Timeout(_) | RequestError::Stalled(_) | RequestError::NoInput(_) => {
            (ErrorKind::Timeout, format!("{error}; {EFFECT_NOTICE}"))
        }
        RequestError::Cancelled => (ErrorKind::Cancelled, format!("{error}; {EFFECT_NOTICE}")),
        RequestError::TooManyRounds | RequestError::Unexpected => {
            (ErrorKind::Tool, format!("{error}; {EFFECT_NOTICE}"))
        }
    };
    Err(ToolError::Model(
        Error::new(kind, Phase::Execute, message).with_tool(tool),
    ))
}

/// Returns the error of a call whose server cannot be used. The model receives it, and the conversation continues.
pub(super) fn unusable_server_error(error: &Error, tool: &str) -> ToolError {
    let call_error = Error::new(ErrorKind::ToolUnavailable, Phase::Execute, error.message.clone())
        .with_tool(tool)
        .with_log(error.log.clone())
        .with_source(error.clone());
    ToolError::Model(match &error.suggestion {
        Some(suggestion) => call_error.with_suggestion(suggestion.clone()),
        None => call_error,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn message(error: RequestError) -> String {
        failed_call_result(error, "t").unwrap_err().report().message.clone()
    }

    #[test]
    fn the_error_after_a_call_was_sent_warns_of_a_possible_effect() {
        for error in [
            RequestError::Failed("the server cancelled the call: it gave no reason".to_owned()),
            RequestError::Closed("the server closed it".to_owned()),
            RequestError::Timeout(Duration::from_secs(1)),
            RequestError::Stalled(Duration::from_secs(1)),
            RequestError::NoInput(Duration::from_secs(1)),
            RequestError::Cancelled,
            RequestError::TooManyRounds,
            RequestError::Unexpected,
        ] {
            let message = message(error);
            assert!(message.ends_with("; it may have taken effect"), "{message}");
        }
    }

    #[test]
    fn the_error_of_an_unprocessed_call_does_not_mention_an_effect() {
        for error in [
            RequestError::NotProcessed("the request failed: connection refused".to_owned()),
            RequestError::SessionLost,
        ] {
            let message = message(error);
            assert!(!message.contains("effect"), "{message}");
        }
    }
}
