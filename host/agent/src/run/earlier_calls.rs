//! The effect of earlier calls of a response on the tools of later ones.

use std::collections::HashSet;

use crate::toolbox::Toolbox;
use toolwit_core::{NamedTool, ToolId};

/// The calls of a response that come before one of its calls.
#[derive(Default)]
pub(super) struct EarlierCalls {
    tool_ids: HashSet<ToolId>,
    count: usize,
    opens_exclusive_facade: bool,
}

impl EarlierCalls {
    /// Adds a call, whose tool may not exist yet.
    pub(super) fn add(&mut self, tool: Option<&NamedTool>) {
        self.count += 1;
        let Some(tool) = tool else { return };
        self.tool_ids.insert(tool.definition.id.clone());
        self.opens_exclusive_facade |= tool.tool.facade().is_some_and(|facade| facade.is_exclusive());
    }

    /// Returns whether the calls may lock a tool, or bind it to another object or other arguments. Such a tool must not
    /// be called before the earlier calls are answered:
    ///
    /// - an exclusive facade locks all other tools;
    /// - the tool that injected this one, such as a facade, may inject it again for other arguments; the host's own
    ///   tools, such as `search_tools`, inject the same tool for all arguments;
    /// - any call may return a newer instance of an entity whose methods act on the newest one, or recover a lost
    ///   object.
    pub(super) fn may_change(&self, tool: &NamedTool, toolbox: &Toolbox) -> bool {
        let id = &tool.definition.id;
        let parent = toolbox.lineage().parent(id);
        self.opens_exclusive_facade
            || parent.is_some_and(|parent| !parent.is_host() && self.tool_ids.contains(parent))
            || (self.count > 0 && toolbox.entities().may_rebind(id))
    }
}
