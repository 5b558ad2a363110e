//! Why a rule, or a file of grants, is refused.

use std::fmt;

/// A rule that cannot be what its author meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RuleError(String);

impl RuleError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// A place in a file; both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePosition {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl FilePosition {
    /// Finds the line and column of a byte.
    pub(crate) fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a file of grants is refused. Nothing of a refused file holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantsError {
    /// It is larger than a person could have meant.
    #[error("it has {bytes} bytes and may have {bytes_max}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The bound.
        bytes_max: u64,
    },
    /// It is no UTF-8 text.
    #[error("it is no plain UTF-8 text: {0}")]
    NotText(&'static str),
    /// A key, a value or a rule is wrong.
    #[error("{position}: {message}")]
    Rule {
        /// Where.
        position: FilePosition,
        /// What is wrong there.
        message: String,
    },
}
