//! Errors of language models.

use toolwit_core::{Error, ErrorKind, Phase};

/// The reason why an inference failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The configuration is invalid, such as a missing API key, an invalid scenario or a malformed base URL.
    #[error("{message}")]
    Configuration {
        /// The problem.
        message: String,
        /// A way to fix it.
        suggestion: String,
    },
    /// The provider refused the request, and a retry would fail again.
    #[error("the provider refused the request with status {status}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// The provider's message, truncated.
        message: String,
    },
    /// The provider refused the request, because the request does not fit into the context of the model.
    #[error("the provider refused the request with status {status}: {message}")]
    ContextExceeded {
        /// HTTP status.
        status: u16,
        /// The provider's message, truncated.
        message: String,
    },
    /// The provider paused its response, and did not complete the response in further requests.
    #[error("the provider paused its response and did not complete it")]
    Paused,
    /// The provider could not be reached, was overloaded or failed, even after retries.
    #[error("the provider is unavailable: {message} (attempts: {attempts})")]
    Unavailable {
        /// Number of attempts.
        attempts: u32,
        /// Failure of the last attempt.
        message: String,
        /// HTTP status of the last attempt, or `None` if it received no response.
        status: Option<u16>,
    },
    /// The provider's response is not valid.
    #[error("the provider's response is not valid: {message}")]
    Malformed {
        /// The problem.
        message: String,
    },
    /// A scripted model received a request that its script does not expect, the script is not valid, or not all of its turns
    /// were played.
    #[error("{message}")]
    Script {
        /// The problem. If a request differs from the expected one, the message contains the turn and the differences.
        message: String,
    },
    /// A replay cannot continue, because a request or a call differs from the trace, or because the trace has no further
    /// response.
    #[error("{message}")]
    Diverged {
        /// The event and the lines that differ, or the number of responses in the trace.
        message: String,
    },
    /// The caller cancelled the request.
    #[error("the request was cancelled")]
    Cancelled,
}

impl ModelError {
    /// Returns a suggestion on how to fix the problem, or `None` if no suggestion applies.
    #[must_use]
    pub fn suggestion(&self) -> Option<String> {
        let text = match self {
            Self::Configuration { suggestion, .. } => suggestion,
            Self::Refused { status: 401 | 403, .. } => "check the provider's key, and that it has access to this model",
            Self::Refused { status: 404, .. } => "check the model's name and the base URL",
            Self::ContextExceeded { .. } => {
                "start a new conversation, declare fewer tools, or set `context_tokens_max`, so that older messages are summarized"
            }
            Self::Paused => "split the task, or use the delivery `list`",
            Self::Refused { status: 413, .. } => "shorten the conversation or declare fewer tools",
            Self::Refused { status: 429, .. } => "check the plan and credit of the account at the provider",
            Self::Refused { status: 300..=399, .. } => "set the base URL to the provider's current address",
            Self::Unavailable { status: Some(429), .. } => "wait, or send fewer requests",
            Self::Unavailable { status: None, .. } => "check that the base URL is reachable, or increase the timeout",
            Self::Malformed { .. } => "check that the base URL belongs to an API of the provider",
            Self::Diverged { .. } => "replay with the tools and the settings of the recorded run",
            Self::Script { .. } => "change the script, or the code under test",
            Self::Refused { .. } | Self::Unavailable { .. } | Self::Cancelled => return None,
        };
        Some(text.to_owned())
    }
}

impl From<ModelError> for Error {
    fn from(error: ModelError) -> Self {
        let kind = match &error {
            ModelError::Configuration { .. } => ErrorKind::Configuration,
            ModelError::Cancelled => ErrorKind::Cancelled,
            _ => ErrorKind::Model,
        };
        let converted = Self::new(kind, Phase::Model, error.to_string());
        let converted = match error.suggestion() {
            Some(suggestion) => converted.with_suggestion(suggestion),
            None => converted,
        };
        converted.with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_converted_error_has_a_kind_a_source_and_a_suggestion() {
        let refused = ModelError::Refused {
            status: 401,
            message: "no such key".into(),
        };
        let error = Error::from(refused.clone());
        assert_eq!((error.kind, error.phase), (ErrorKind::Model, Phase::Model));
        assert_eq!(error.suggestion, refused.suggestion());
        let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref());
        assert_eq!(source, Some(&refused));
        assert_eq!(Error::from(ModelError::Cancelled).kind, ErrorKind::Cancelled);
    }
}
