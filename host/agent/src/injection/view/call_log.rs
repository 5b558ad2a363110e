//! The calls of a conversation.

use serde::{Deserialize, Serialize};

use toolwit_core::{Arguments, ToolId, ToolName};

/// A call that ran and returned a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PastCall {
    /// Number of the turn in which the call was made. The first turn is 1.
    pub turn: u32,
    /// Name under which the model called the tool.
    pub name: ToolName,
    /// Id of the tool.
    pub tool: ToolId,
    /// Arguments of the call.
    pub arguments: Arguments,
    /// Whether the call failed.
    pub is_error: bool,
    /// Types of the artifacts that the call returned.
    pub artifacts: Vec<String>,
}

impl PastCall {
    /// Describes a successful call without arguments and artifacts.
    #[must_use]
    pub fn new(turn: u32, name: ToolName, tool: ToolId) -> Self {
        Self {
            turn,
            name,
            tool,
            arguments: Arguments::new(),
            is_error: false,
            artifacts: Vec::new(),
        }
    }
}

/// The completed calls of a conversation, in the order of their results.
///
/// The log depends only on the events of the conversation, so it is the same after a resume, in a replay and in a fork.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallLog {
    calls: Vec<PastCall>,
}

impl CallLog {
    /// Appends a call.
    pub fn push(&mut self, call: PastCall) {
        self.calls.push(call);
    }

    /// Returns all calls, oldest first.
    #[must_use]
    pub fn all(&self) -> &[PastCall] {
        &self.calls
    }

    /// Returns the successful calls, oldest first.
    pub fn succeeded(&self) -> impl DoubleEndedIterator<Item = &PastCall> {
        self.calls.iter().filter(|call| !call.is_error)
    }
}

impl Extend<PastCall> for CallLog {
    fn extend<I: IntoIterator<Item = PastCall>>(&mut self, calls: I) {
        self.calls.extend(calls);
    }
}
