//! Errors of the grants file on disk.

use std::io;
use std::path::PathBuf;

use crate::grants::GrantsError;
use toolwit_core::{Error, ErrorKind, Phase};

/// A grants file that could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[error("the grants file {} {reason}", .path.display())]
pub struct GrantsFileError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub reason: GrantsFileErrorReason,
}

/// The reason of a [`GrantsFileError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantsFileErrorReason {
    /// The file, or the record of used grants or of granted directories next to it, could not be read.
    #[error("could not be read: {0}")]
    Read(#[source] io::Error),
    /// The file, its lock, its log or the record of granted directories could not be written.
    #[error("could not be changed: {0}")]
    Write(#[source] io::Error),
    /// The file is invalid.
    #[error("is invalid: {0}")]
    Invalid(#[source] GrantsError),
    /// The grants are an inline array, which the host cannot edit.
    #[error("has its grants in an inline array; write each as a `[[grant]]` table")]
    InlineGrants,
    /// A rule of the new grant cannot be enforced, or the file cannot be edited, or would be invalid after the change.
    #[error("cannot have this grant: {0}")]
    NotGrantable(String),
    /// The file has no grant for the plugin.
    #[error("has no grant for `{}`", .0.escape_debug())]
    NotGranted(String),
    /// The plugin has no rule whose text starts with the requested text, or several.
    #[error("has {} for `{}`; its rules for `{plugin}` are: {}", if *.is_ambiguous { "several rules" } else { "no rule" }, .rule.escape_debug(), .rules.join("; "))]
    NotOneRule {
        /// The plugin.
        plugin: String,
        /// The requested text of the rule.
        rule: String,
        /// Whether the text of several rules starts with the requested text.
        is_ambiguous: bool,
        /// The rules of the plugin.
        rules: Vec<String>,
    },
}

impl From<GrantsFileError> for Error {
    fn from(error: GrantsFileError) -> Self {
        Self::new(ErrorKind::Configuration, Phase::Registry, error.to_string()).with_source(error)
    }
}
