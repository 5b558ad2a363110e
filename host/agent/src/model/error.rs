//! Why a language model gave no answer, and what to do about it.

use toolwit_core::{Error, ErrorKind, Phase};

/// Why a model gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The setting of the model is wrong: no key, no such scenario, a malformed base URL.
    #[error("{message}")]
    Configuration {
        /// What is wrong.
        message: String,
        /// What to do about it.
        suggestion: String,
    },
    /// The provider refused the request; asking again will not help.
    #[error("the provider refused the request with status {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The provider's words, bounded.
        message: String,
    },
    /// The provider could not be reached, was too busy or failed, also after retries.
    #[error("the provider gave no answer: {message} (attempts: {attempts})")]
    Unavailable {
        /// How often it was asked.
        attempts: u32,
        /// What happened the last time.
        message: String,
        /// The HTTP status of the last attempt, if there was one.
        status: Option<u16>,
    },
    /// The provider's answer made no sense.
    #[error("the provider's answer is not a chat completion: {message}")]
    Malformed {
        /// What is wrong with it.
        message: String,
    },
    /// A scripted model was shown something else than its scenario says.
    #[error("{message}")]
    Script {
        /// What was expected and what was shown.
        message: String,
    },
    /// The caller cancelled.
    #[error("the request was cancelled")]
    Cancelled,
}

impl ModelError {
    /// Returns what a person can do about it.
    #[must_use]
    pub fn suggestion(&self) -> Option<String> {
        let text = match self {
            Self::Configuration { suggestion, .. } => suggestion,
            Self::Refused { status: 401 | 403, .. } => "check the provider's key, and that it may use this model",
            Self::Refused { status: 404, .. } => "check the model's name and the base URL, which usually ends in `/v1`",
            Self::Refused { status: 413, .. } => "shorten the conversation or declare fewer tools",
            Self::Refused { status: 429, .. } => "check the plan and the credit of the provider's account",
            Self::Refused { status: 300..=399, .. } => "set the base URL to where the provider really is",
            Self::Unavailable { status: Some(429), .. } => "wait a while, or ask less often",
            Self::Unavailable { status: None, .. } => {
                "check that the base URL can be reached from here, or allow more time"
            }
            Self::Malformed { .. } => {
                "check that the base URL is that of an OpenAI-compatible API; it usually ends in `/v1`"
            }
            Self::Script { .. } => "change the scenario, or what it is played against",
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
        let report = Self::new(kind, Phase::Model, error.to_string());
        let report = match error.suggestion() {
            Some(suggestion) => report.with_suggestion(suggestion),
            None => report,
        };
        report.with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_leaves_the_crate_keeps_kind_source_and_suggestion() {
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
