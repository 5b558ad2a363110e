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
    /// The digest that identifies the caller.
    caller: String,
    session: Weak<ServerSession>,
    pub(super) pinned: PinnedTools,
    /// The tools that the caller can use. The entities of handles get their methods from these tools.
    pub(super) usable_tools: Arc<UsableTools>,
}

/// The tools of each caller. The caller that used the server most recently is the last.
#[derive(Default)]
pub(super) struct CallerTable(Vec<CallerTools>);

impl CallerTable {
    /// Returns the tools of a caller, and records its session. A caller without an entry is added. If the table is
    /// full, the caller that used the server least recently is removed. Callers whose session was dropped lose their
    /// tools and keep their pins.
    pub(super) fn record(&mut self, caller: &str, session: &Arc<ServerSession>) -> &mut CallerTools {
        let mut tools = match self.0.iter().position(|tools| tools.caller == caller) {
            Some(position) => self.0.remove(position),
            None => CallerTools {
                caller: caller.to_owned(),
                session: Weak::new(),
                pinned: PinnedTools::default(),
                usable_tools: Arc::default(),
            },
        };
        tools.session = Arc::downgrade(session);
        for entry in self.0.iter_mut().filter(|entry| entry.session.strong_count() == 0) {
            entry.pinned.forget_tools();
            entry.usable_tools = Arc::default();
        }
        if self.0.len() >= CALLERS_MAX {
            self.0.remove(0);
        }
        self.0.push(tools);
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    /// Returns the tools of a caller, or `None` if the caller has not listed them, or was removed from the table.
    pub(super) fn get(&mut self, caller: &str) -> Option<&mut CallerTools> {
        self.0.iter_mut().find(|tools| tools.caller == caller)
    }
}
