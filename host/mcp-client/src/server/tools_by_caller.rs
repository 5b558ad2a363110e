//! The tools of a server for each of its callers.

use std::sync::{Arc, Weak};

use super::pinned_tools::PinnedTools;
use crate::session::ServerSession;
use crate::tool::UsableTools;
use toolwit_core::limits::MCP_CONNECTIONS_MAX;

/// The maximum number of callers whose pinned definitions are kept. The pins outlive the connections of the callers.
const CALLERS_MAX: usize = 4 * MCP_CONNECTIONS_MAX;

/// The tools of a server for one caller.
pub(super) struct CallerTools {
    /// The digest that identifies the caller; see `SessionPool::caller_digest`.
    caller_digest: String,
    session: Weak<ServerSession>,
    pub(super) pinned_tools: PinnedTools,
    /// The tools that the caller can use. The methods of handle entities call these tools.
    pub(super) usable_tools: Arc<UsableTools>,
}

/// The tools of each caller. The caller that used the server most recently is the last element.
#[derive(Default)]
pub(super) struct CallerTable(Vec<CallerTools>);

impl CallerTable {
    /// Returns the tools of a caller, and records the session of the caller. A new caller is added. If the table is full, the
    /// caller that used the server least recently is removed. Callers whose session was dropped lose their tools, but keep
    /// their pins.
    pub(super) fn record_session(&mut self, caller_digest: &str, session: &Arc<ServerSession>) -> &mut CallerTools {
        let mut caller = match self.0.iter().position(|caller| caller.caller_digest == caller_digest) {
            Some(position) => self.0.remove(position),
            None => CallerTools {
                caller_digest: caller_digest.to_owned(),
                session: Weak::new(),
                pinned_tools: PinnedTools::default(),
                usable_tools: Arc::default(),
            },
        };
        caller.session = Arc::downgrade(session);
        for idle_caller in self.0.iter_mut().filter(|caller| caller.session.strong_count() == 0) {
            idle_caller.pinned_tools.drop_tools();
            idle_caller.usable_tools = Arc::default();
        }
        if self.0.len() >= CALLERS_MAX {
            self.0.remove(0);
        }
        self.0.push(caller);
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    /// Returns the tools of a caller, or `None` if the caller has not listed them, or was removed from the table.
    pub(super) fn get(&mut self, caller_digest: &str) -> Option<&mut CallerTools> {
        self.0.iter_mut().find(|caller| caller.caller_digest == caller_digest)
    }
}
