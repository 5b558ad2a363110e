//! A call that could not be made, told to whom it concerns.

use crate::error::{Error, ErrorKind, Phase};

/// A call that failed outside the tool's own answer. The variant says who must hear it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ToolError {
    /// The model can do something about it: other arguments, another tool, or telling the user.
    #[error(transparent)]
    Model(Error),
    /// Only the operator can; the run stops.
    #[error(transparent)]
    Operator(Error),
}

impl ToolError {
    /// Refuses arguments; the model may try others.
    #[must_use]
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::Model(Error::new(ErrorKind::InvalidArguments, Phase::Validate, message))
    }

    /// Returns what went wrong, whoever must hear it.
    #[must_use]
    pub fn report(&self) -> &Error {
        match self {
            Self::Model(error) | Self::Operator(error) => error,
        }
    }

    /// Changes what is told, and leaves who must hear it.
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
