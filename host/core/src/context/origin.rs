//! The origin of events and of output.

use serde::{Deserialize, Serialize};

/// The source of an event or a text: a process of `toolwit-agent`, which is a conversation or an agent that a tool runs. It is
/// not a process of the operating system.
///
/// An agent has a parent call: the call of the tool that runs the agent. Call ids are unique in a run, including its nested
/// agents. The parent call therefore also identifies the outer process, which made the call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// The id of the process; empty in traces that were written without origins.
    #[serde(default)]
    pub process: String,
    /// The id of the call in which the process runs; `None` for the outermost process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_call: Option<String>,
}
