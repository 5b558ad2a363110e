//! The effect of earlier calls of a response on the tools of later ones.

use std::collections::HashSet;

use crate::toolbox::Toolbox;
use toolwit_core::{NamedTool, ToolId};

/// The calls of a response that come before a given call of the same response.
#[derive(Default)]
pub(super) struct EarlierCalls {
    tool_ids: HashSet<ToolId>,
    count: usize,
    opens_exclusive_facade: bool,
}

impl EarlierCalls {
    /// Adds a call. `tool` is `None` if the tool of the call does not exist yet.
    pub(super) fn add(&mut self, tool: Option<&NamedTool>) {
        self.count += 1;
        let Some(tool) = tool else { return };
        self.tool_ids.insert(tool.definition.id.clone());
        self.opens_exclusive_facade |= tool.tool.facade().is_some_and(|facade| facade.is_exclusive());
    }

    /// Returns whether the earlier calls may lock `tool`, or bind it to another object or to other arguments. If so, `tool`
    /// must not be called before the earlier calls are answered. There are three cases:
    ///
    /// - An earlier call opens an exclusive facade, which locks all other tools.
    /// - An earlier call calls the tool that injected `tool`, such as a facade. It may inject `tool` again, bound to other
    ///   arguments. The host's own tools, such as `search_tools`, inject the same tool for all arguments.
    /// - `tool` is a method that acts on the newest instance of its entity, or a method of a lost object. Any call may
    ///   return a newer instance, or the lost object.
    pub(super) fn may_change(&self, tool: &NamedTool, toolbox: &Toolbox) -> bool {
        let id = &tool.definition.id;
        let parent = toolbox.lineage().parent(id);
        self.opens_exclusive_facade
            || parent.is_some_and(|parent| !parent.is_host() && self.tool_ids.contains(parent))
            || (self.count > 0 && toolbox.entities().may_rebind(id))
    }
}
