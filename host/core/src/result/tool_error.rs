//! Errors of calls that returned no result.

use crate::error::{Error, ErrorKind, Phase};

/// The error of a call that returned no result: the call did not start, it was stopped before its end, or its result was
/// withheld. The variant determines who receives the error.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ToolError {
    /// The model can react: with other arguments, another tool, or a message to the user.
    #[error(transparent)]
    Model(Error),
    /// Only the operator can fix the cause; the run stops.
    #[error(transparent)]
    Operator(Error),
}

impl ToolError {
    /// Creates an error for invalid arguments.
    #[must_use]
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::Model(Error::new(ErrorKind::InvalidArguments, Phase::Validate, message))
    }

    /// Returns the error of either variant.
    #[must_use]
    pub fn report(&self) -> &Error {
        match self {
            Self::Model(error) | Self::Operator(error) => error,
        }
    }

    /// Changes the error and keeps its variant, which determines the receiver.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Error) -> Error) -> Self {
        match self {
            Self::Model(error) => Self::Model(change(error)),
            Self::Operator(error) => Self::Operator(change(error)),
        }
    }
}

impl From<ToolError> for Error {
    fn from(error: ToolError) -> Self {
        match error {
            ToolError::Model(error) | ToolError::Operator(error) => error,
        }
    }
}
