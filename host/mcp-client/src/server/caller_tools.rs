//! The tools of the callers of a server.

use std::sync::{Arc, Weak};

use super::pinned_tools::PinnedTools;
use crate::session::ServerSession;
use crate::tool::HandleTools;
use toolwit_core::limits::MCP_CONNECTIONS_MAX;

/// The maximum number of callers whose pinned definitions are kept. The pins outlive the connections of the callers.
const CALLERS_MAX: usize = 4 * MCP_CONNECTIONS_MAX;

/// The tools of one caller, and the list from which entities of handles get their methods.
pub(super) struct CallerTools {
    /// The digest that identifies the caller.
    caller: String,
    session: Weak<ServerSession>,
    pub(super) pinned: PinnedTools,
    pub(super) handle_tools: Arc<HandleTools>,
}

/// The tools of each caller. The most recent caller is the last.
#[derive(Default)]
pub(super) struct CallerTable(Vec<CallerTools>);

impl CallerTable {
    /// Returns the tools of a caller, and records its session. Callers whose session was dropped keep only their pins.
    pub(super) fn of(&mut self, caller: &str, session: &Arc<ServerSession>) -> &mut CallerTools {
        let mut tools = match self.0.iter().position(|tools| tools.caller == caller) {
            Some(at) => self.0.remove(at),
            None => CallerTools {
                caller: caller.to_owned(),
                session: Weak::new(),
                pinned: PinnedTools::default(),
                handle_tools: Arc::default(),
            },
        };
        tools.session = Arc::downgrade(session);
        for other in self.0.iter_mut().filter(|other| other.session.strong_count() == 0) {
            other.pinned.forget_tools();
            other.handle_tools = Arc::default();
        }
        if self.0.len() >= CALLERS_MAX {
            self.0.remove(0);
        }
        self.0.push(tools);
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    /// Returns the tools of a caller, if the caller has listed them.
    pub(super) fn get(&mut self, caller: &str) -> Option<&mut CallerTools> {
        self.0.iter_mut().find(|tools| tools.caller == caller)
    }
}
