//! The failure of one attempt to send a request, and whether a retry may help.

use std::error::Error as _;
use std::time::Duration;

use toolwit_agent::model::ModelError;

/// The longest provider message in an error, in characters.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// The reason why one attempt of a request failed.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptFailure {
    /// A retry may help.
    Transient {
        status: Option<u16>,
        message: String,
        /// The wait that the provider requested.
        retry_after: Option<Duration>,
    },
    /// The response did not arrive in time. There is no retry: it would take as long, and the provider may bill both attempts.
    TimedOut { message: String },
    /// A retry would fail too.
    Permanent(ModelError),
}

impl AttemptFailure {
    /// Returns the failure for data that did not arrive within a time limit.
    pub(super) fn timed_out(expected: &str, limit: Duration) -> Self {
        Self::TimedOut {
            message: format!("no {expected} within {} ms", limit.as_millis()),
        }
    }

    /// Returns the failure for a response that ended before it was complete.
    pub(crate) fn interrupted() -> Self {
        Self::Transient {
            status: None,
            message: "the response ended before it was complete".to_owned(),
            retry_after: None,
        }
    }

    /// Returns the failure for a response without content. Some gateways send one when the server behind them fails.
    pub(crate) fn empty() -> Self {
        Self::Transient {
            status: None,
            message: "the response is empty".to_owned(),
            retry_after: None,
        }
    }

    /// Returns the failure for a response that the provider itself ended with an error, for a reason that may be temporary.
    pub(crate) fn ended_with_error(reason: &str) -> Self {
        Self::Transient {
            status: None,
            message: format!("the provider ended its response with the reason `{reason}`"),
            retry_after: None,
        }
    }

    /// Returns the failure for a body that is not a valid response, or exceeds a limit.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::Permanent(ModelError::Malformed {
            message: message.into(),
        })
    }

    /// Returns the failure for a transport error. Its message does not contain the URL, which may contain a key.
    pub(super) fn from_transport_error(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Self::Transient {
            status: None,
            message,
            retry_after: None,
        }
    }

    /// Applies the advice of the provider whether to retry, if there is one.
    pub(super) fn with_advice(self, should_retry: Option<bool>) -> Self {
        match (self, should_retry) {
            (
                Self::Transient {
                    status: Some(status),
                    message,
                    ..
                },
                Some(false),
            ) => Self::Permanent(ModelError::Refused { status, message }),
            (Self::Permanent(ModelError::Refused { status, message }), Some(true)) => Self::Transient {
                status: Some(status),
                message,
                retry_after: None,
            },
            (failure, _) => failure,
        }
    }

    /// Converts the failure of the last attempt to the error of the request.
    pub(super) fn into_error(self, attempts: u32) -> ModelError {
        match self {
            Self::Transient { status, message, .. } => ModelError::Unavailable {
                attempts,
                message,
                status,
            },
            Self::TimedOut { message } => ModelError::Unavailable {
                attempts,
                message,
                status: None,
            },
            Self::Permanent(error) => error,
        }
    }

    /// Cleans a message that can contain text of the provider: applies `redact`, replaces control characters and truncates the
    /// message.
    pub(crate) fn cleaned(mut self, redact: impl Fn(&str) -> String) -> Self {
        let text = match &mut self {
            Self::Transient { message, .. } | Self::TimedOut { message } => message,
            Self::Permanent(
                ModelError::Refused { message, .. }
                | ModelError::ContextExceeded { message, .. }
                | ModelError::Malformed { message },
            ) => message,
            Self::Permanent(_) => return self,
        };
        let printable = redact(text).replace(char::is_control, " ");
        *text = match printable.char_indices().nth(MESSAGE_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &printable[..end]),
            None => printable,
        };
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_messages_are_redacted_and_truncated() {
        let long = format!("key sk-1 \u{1b}[31m{}", "x".repeat(3_000));
        let cleaned = AttemptFailure::malformed(long).cleaned(|text| text.replace("sk-1", "[redacted]"));
        let AttemptFailure::Permanent(ModelError::Malformed { message }) = cleaned else {
            unreachable!("`cleaned` changes only the message");
        };
        assert!(message.starts_with("key [redacted]  [31mxx") && message.ends_with("x…"));
        assert_eq!(message.chars().count(), MESSAGE_CHARS_MAX + 1);
    }
}
