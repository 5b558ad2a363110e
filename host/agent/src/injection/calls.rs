//! What a conversation has called.

use serde::{Deserialize, Serialize};

use toolwit_core::{Arguments, ToolId, ToolName};

/// A call that was run and answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PastCall {
    /// The number of the user's message that it was to answer, the first one being 1.
    pub turn: u32,
    /// The name by which the model called the tool.
    pub name: ToolName,
    /// The tool.
    pub tool: ToolId,
    /// What it was called with.
    pub arguments: Arguments,
    /// Whether it failed.
    pub is_error: bool,
    /// The types of the objects that it handed over.
    pub artifacts: Vec<String>,
}

impl PastCall {
    /// Describes a call that succeeded, handed nothing over and took no arguments.
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

/// The calls of a conversation in the order of their answers.
///
/// It follows from the conversation's events alone, so whatever follows from it is the same after a resume, in a replay and
/// in a fork.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallLog {
    calls: Vec<PastCall>,
}

impl CallLog {
    /// Adds a call.
    pub fn push(&mut self, call: PastCall) {
        self.calls.push(call);
    }

    /// Returns all calls, the oldest first.
    #[must_use]
    pub fn all(&self) -> &[PastCall] {
        &self.calls
    }

    /// Returns the calls that succeeded, the oldest first.
    pub fn succeeded(&self) -> impl DoubleEndedIterator<Item = &PastCall> {
        self.calls.iter().filter(|call| !call.is_error)
    }
}

impl Extend<PastCall> for CallLog {
    fn extend<I: IntoIterator<Item = PastCall>>(&mut self, calls: I) {
        self.calls.extend(calls);
    }
}
