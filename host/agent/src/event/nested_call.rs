//! The start and the end of a nested call: a call that a running tool makes.

use serde::{Deserialize, Serialize};

use super::{RecordedOutcome, RecordedStart};
use toolwit_core::{ErrorKind, ToolId};

/// The start of a nested call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NestedCallStart {
    /// The id of the nested call: that of its parent, `/` and its number. Earlier versions recorded the id of the model's call.
    pub id: String,
    /// The id of the call that makes the nested call; empty in the events of earlier versions.
    #[serde(default)]
    pub parent: String,
    /// The number of the nested call among those of its parent, from 1.
    pub number: u32,
    /// The id of the calling tool.
    pub caller: ToolId,
    /// The requested tool.
    pub tool: ToolId,
    /// The details of the start. Only conversations with a journal have them, and only if the requested tool exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<RecordedStart>,
}

/// The end of a nested call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NestedCallEnd {
    /// The id of the nested call, as in its start.
    pub id: String,
    /// The id of the call that makes the nested call; empty in the events of earlier versions.
    #[serde(default)]
    pub parent: String,
    /// The number of the nested call among those of its parent.
    pub number: u32,
    /// The requested tool.
    pub tool: ToolId,
    /// The duration in milliseconds.
    pub wall_ms: u64,
    /// Whether the call failed.
    pub is_error: bool,
    /// The kind of error, if known.
    pub kind: Option<ErrorKind>,
    /// The outcome. Only conversations with a journal have it, and only for a call that returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RecordedOutcome>,
}

impl NestedCallStart {
    /// Returns the id of the nested call and that of its parent, also for an event of an earlier version.
    pub(crate) fn ids(&self) -> (String, String) {
        call_and_parent_ids(&self.id, &self.parent, self.number)
    }
}

impl NestedCallEnd {
    /// Returns the id of the nested call and that of its parent, also for an event of an earlier version.
    pub(crate) fn ids(&self) -> (String, String) {
        call_and_parent_ids(&self.id, &self.parent, self.number)
    }
}

fn call_and_parent_ids(id: &str, parent: &str, number: u32) -> (String, String) {
    if parent.is_empty() {
        (format!("{id}/{number}"), id.to_owned())
    } else {
        (id.to_owned(), parent.to_owned())
    }
}
