//! The calls of a conversation.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use toolwit_core::limits::LOGGED_ARGUMENTS_BYTES_MAX;
use toolwit_core::text::json_weight_of;
use toolwit_core::{Arguments, ToolId, ToolName};

/// The entry of a call in a [`CallLog`]: a call that ran and returned. The entry does not contain the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PastCall {
    /// Number of the turn in which the call was made. The first turn is 1.
    pub turn: u32,
    /// Name under which the model called the tool.
    pub name: ToolName,
    /// Id of the tool.
    pub tool: ToolId,
    /// All [identities](toolwit_core::tool_identities) of the tool: the ids of its decorator chain; for a method, also its id
    /// without the entity.
    #[serde(default)]
    pub identities: Vec<ToolId>,
    /// Arguments of the call.
    ///
    /// If the arguments of all calls of a log take more memory than [`LOGGED_ARGUMENTS_BYTES_MAX`], the log drops those of
    /// older calls. It does not drop the arguments of the last successful call of each tool.
    pub arguments: Arguments,
    /// Whether the call failed.
    pub is_error: bool,
    /// Types of the artifacts that the call returned.
    pub artifacts: Vec<String>,
    /// Whether the result revealed tools, in a call of this process. A resume does not restore the value.
    #[serde(skip)]
    pub has_revealed_tools: bool,
}

impl PastCall {
    /// Creates the entry of a successful call without arguments and artifacts.
    #[must_use]
    pub fn new(turn: u32, name: ToolName, tool: ToolId) -> Self {
        Self {
            turn,
            name,
            identities: vec![tool.clone()],
            tool,
            arguments: Arguments::new(),
            is_error: false,
            artifacts: Vec::new(),
            has_revealed_tools: false,
        }
    }
}

/// The completed calls of a conversation, in the order of their results.
///
/// The log depends only on the events of the conversation, so it is the same after a resume, in a replay and in a fork. A
/// lookup by tool takes constant time.
#[derive(Clone, Debug, Default)]
pub struct CallLog {
    calls: Vec<PastCall>,
    /// A number for each call, unique in the operating system process: see [`stamp`](Self::stamp).
    stamps: Vec<u64>,
    /// The position of the last successful call of each tool.
    last_success: HashMap<ToolId, usize>,
    /// The identities of the tools that were called successfully.
    succeeded_ids: HashSet<ToolId>,
    /// The names under which tools were called successfully.
    succeeded_names: HashSet<String>,
    /// The types of the artifacts of successful calls.
    artifact_kinds: BTreeSet<String>,
    /// The positions of the calls whose arguments are stored, oldest first, each with the memory of the arguments in bytes.
    stored_arguments: VecDeque<(usize, u64)>,
    /// The memory of all stored arguments, in bytes.
    stored_argument_bytes: u64,
}

impl PartialEq for CallLog {
    fn eq(&self, other: &Self) -> bool {
        self.calls == other.calls
    }
}

impl CallLog {
    /// Appends a call.
    pub fn push(&mut self, call: PastCall) {
        static STAMPS: AtomicU64 = AtomicU64::new(0);
        self.stamps.push(STAMPS.fetch_add(1, Ordering::Relaxed));
        if !call.is_error {
            self.last_success.insert(call.tool.clone(), self.calls.len());
            self.succeeded_ids.extend(call.identities.iter().cloned());
            self.succeeded_names.insert(call.name.to_string());
            self.artifact_kinds.extend(call.artifacts.iter().cloned());
        }
        if !call.arguments.is_empty() {
            let bytes = json_weight_of(&call.arguments);
            self.stored_arguments.push_back((self.calls.len(), bytes));
            self.stored_argument_bytes = self.stored_argument_bytes.saturating_add(bytes);
        }
        self.calls.push(call);
        self.drop_old_arguments();
    }

    /// Drops the oldest arguments until the others fit the limit, except those of the last successful call of each tool.
    fn drop_old_arguments(&mut self) {
        while self.stored_argument_bytes > LOGGED_ARGUMENTS_BYTES_MAX {
            let is_droppable = |&(position, _): &(usize, u64)| {
                let call = &self.calls[position];
                self.last_success.get(&call.tool) != Some(&position)
            };
            let droppable = self.stored_arguments.iter().position(is_droppable);
            let Some((position, bytes)) = droppable.and_then(|index| self.stored_arguments.remove(index)) else {
                return;
            };
            self.calls[position].arguments = Arguments::new();
            self.stored_argument_bytes -= bytes;
        }
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

    /// Returns the last successful call of the tool with this id, and its position among all calls. Returns `None` if no call
    /// of the tool succeeded.
    #[must_use]
    pub fn last_success(&self, tool: &ToolId) -> Option<(usize, &PastCall)> {
        let position = *self.last_success.get(tool)?;
        Some((position, &self.calls[position]))
    }

    /// Returns whether a tool with this identity was called successfully.
    #[must_use]
    pub fn has_succeeded(&self, tool: &ToolId) -> bool {
        self.succeeded_ids.contains(tool)
    }

    /// Returns whether a tool was called successfully under this name.
    #[must_use]
    pub fn has_succeeded_as(&self, name: &str) -> bool {
        self.succeeded_names.contains(name)
    }

    /// Returns the types of the artifacts of successful calls, each once.
    pub fn artifact_kinds(&self) -> impl Iterator<Item = &str> {
        self.artifact_kinds.iter().map(String::as_str)
    }

    /// Returns a number that identifies the log up to and including the call at a position: logs with the same number have the
    /// same calls so far. Copies of a log share the number. Returns `None` if there is no call at this position.
    pub(in crate::injection) fn stamp(&self, position: usize) -> Option<u64> {
        self.stamps.get(position).copied()
    }
}

impl Extend<PastCall> for CallLog {
    fn extend<I: IntoIterator<Item = PastCall>>(&mut self, calls: I) {
        calls.into_iter().for_each(|call| self.push(call));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns a call of a tool with one argument: a text whose length is a third of the limit on stored arguments.
    fn call(tool: &str, is_error: bool) -> PastCall {
        let text = "x".repeat(usize::try_from(LOGGED_ARGUMENTS_BYTES_MAX / 3).unwrap());
        let mut arguments = Arguments::new();
        arguments.insert("text".to_owned(), text.into());
        PastCall {
            arguments,
            is_error,
            ..PastCall::new(1, ToolName::parse(tool).unwrap(), ToolId::native(tool))
        }
    }

    /// Returns the positions of the calls that have their arguments.
    fn positions_with_arguments(log: &CallLog) -> Vec<usize> {
        let calls = log.all().iter().enumerate();
        let with_arguments = calls.filter(|(_, call)| !call.arguments.is_empty());
        with_arguments.map(|(position, _)| position).collect()
    }

    #[test]
    fn old_arguments_are_dropped_except_those_of_the_last_successful_call_of_a_tool() {
        let mut log = CallLog::default();
        log.extend([call("open", false), call("write", true)]);
        assert_eq!(positions_with_arguments(&log), [0, 1], "both arguments fit the limit");
        log.extend((0..4).map(|_| call("write", true)));
        assert_eq!(positions_with_arguments(&log), [0, 5]);
        log.extend([call("write", false), call("write", false)]);
        assert_eq!(positions_with_arguments(&log), [0, 7]);
        assert_eq!(log.all().len(), 8);
        let (position, open_call) = log.last_success(&ToolId::native("open")).unwrap();
        assert_eq!((position, open_call), (0, &call("open", false)));
    }

    #[test]
    fn the_stored_arguments_of_many_calls_of_one_tool_fit_the_limit() {
        let mut log = CallLog::default();
        log.extend((0..100).map(|_| call("write", false)));
        assert!(log.stored_argument_bytes <= LOGGED_ARGUMENTS_BYTES_MAX);
        assert_eq!(positions_with_arguments(&log).len(), log.stored_arguments.len());
    }
}
