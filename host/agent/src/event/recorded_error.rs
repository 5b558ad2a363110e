//! The record of an error that only the operator can fix.

use serde::{Deserialize, Serialize};

use toolwit_core::{DeniedAccess, Error, ErrorKind, Phase};

/// An error that only the operator can fix, and that ends the run. The model does not read it.
///
/// Its kind and its denied accesses are those of the [`RecordedOutcome`](super::RecordedOutcome).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedError {
    /// The message.
    pub message: String,
    /// The suggestion for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The plugin, if one is involved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// The tool, if one is involved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The innermost agent in which the error occurred, if it occurred in an agent that a tool runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl RecordedError {
    /// Records an error, without its source and the diagnostics of the guest.
    pub(super) fn of(error: &Error) -> Self {
        Self {
            message: error.message.clone(),
            suggestion: error.suggestion.clone(),
            plugin: error.plugin.clone(),
            tool: error.tool.clone(),
            agent: error.agent.clone(),
        }
    }

    /// Returns the error, with the phase [`Phase::Execute`].
    pub(super) fn into_error(self, kind: ErrorKind, denied: Vec<DeniedAccess>) -> Error {
        let mut error = Error::new(kind, Phase::Execute, self.message).with_denied(denied);
        if let Some(suggestion) = self.suggestion {
            error = error.with_suggestion(suggestion);
        }
        if let Some(plugin) = self.plugin {
            error = error.with_plugin(plugin);
        }
        if let Some(tool) = self.tool {
            error = error.with_tool(tool);
        }
        if let Some(agent) = self.agent {
            error = error.with_agent(agent);
        }
        error
    }
}
