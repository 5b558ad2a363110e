//! Errors of rules and of the grants file.

use std::fmt;

/// The reason why a rule, a request target, or a part of one of them is invalid. Names and hosts are such parts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RuleError(String);

impl RuleError {
    /// Creates an error from its message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// A position in a file. Lines and columns count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePosition {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl FilePosition {
    /// Returns the position of the character at an offset in bytes. For an offset inside a character or beyond the text,
    /// returns the position of the end of the text.
    pub(crate) fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |index| index + 1);
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

/// The reason why a grants file is invalid. An invalid file grants nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantsError {
    /// The file is too large.
    #[error("the file has {bytes} bytes; the limit is {bytes_max}")]
    TooLarge {
        /// The size of the file, in bytes.
        bytes: u64,
        /// The maximum size, in bytes.
        bytes_max: u64,
    },
    /// The file is not plain UTF-8 text.
    #[error("the file is not plain UTF-8 text: {0}")]
    NotText(&'static str),
    /// The file is not valid TOML, or a key, a value or a rule in it is invalid.
    #[error("{position}: {message}")]
    Rule {
        /// The position of the error, or of the grant that contains it.
        position: FilePosition,
        /// The reason.
        message: String,
    },
}
