//! Tools that can be called and are not declared: evicted beyond the limit, or folded.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::Toolbox;
use crate::event::Event;
use toolwit_core::{ToolId, ToolName};

impl Toolbox {
    /// Declares hidden tools again. Returns the event for them, or `None` if none of the tools was hidden.
    pub(crate) fn restore(&mut self, names: &[ToolName]) -> Option<Event> {
        let mut restored = Vec::new();
        for name in names {
            if self.hidden.remove(name) && self.declare(name) {
                self.touch(name);
                restored.push(name.clone());
            }
        }
        (!restored.is_empty()).then_some(Event::ToolsRestored { names: restored })
    }

    /// Hides the injected tools that a strategy folds, before the first inference of a turn. Returns the event for
    /// them.
    pub(super) fn fold(&mut self, tools: &[ToolId]) -> Option<Event> {
        let named = tools.iter().filter_map(|id| self.callable.by_id(id));
        let names: Vec<_> = named
            .map(|tool| tool.name.clone())
            .filter(|name| !self.fixed.contains(name) && !self.hidden.contains(name))
            .collect();
        self.hide(&names);
        (!names.is_empty()).then_some(Event::ToolsFolded { names })
    }

    /// Hides as many tools as exceed the limit on declared tools: first tools that can no longer be called, then
    /// injected tools, then the tools of the application and of roles. In each group, the least recently used tools
    /// come first. Callable tools in `recent` are hidden only if no others are left: injected tools first, and the last
    /// declared first. Tools of the host are never hidden.
    pub(super) fn evict(&mut self, recent: &[ToolName]) -> Option<Event> {
        let excess = self.declared.len().checked_sub(self.tools_max).filter(|n| *n > 0)?;
        let recent: HashSet<_> = recent.iter().collect();
        let declared = self.declared().iter().enumerate();
        let hideable = declared.filter(|(_, tool)| !tool.definition.id.is_host());
        let mut candidates: Vec<_> = hideable
            .map(|(position, tool)| {
                let name = &tool.name;
                let is_recent = recent.contains(name);
                let is_fixed = self.fixed.contains(name);
                let last_use = if is_recent {
                    0
                } else {
                    self.last_use.get(name).copied().unwrap_or(0)
                };
                let order = (self.is_callable(name), is_recent, is_fixed, last_use, Reverse(position));
                (order, name.clone())
            })
            .collect();
        candidates.sort();
        let names: Vec<_> = candidates.into_iter().take(excess).map(|(_, name)| name).collect();
        self.hide(&names);
        (!names.is_empty()).then_some(Event::ToolsEvicted { names })
    }

    /// Returns the event of a warning each time the number of declared tools reaches `tools_warn`.
    pub(super) fn warn(&mut self) -> Option<Event> {
        let is_many = self.declared.len() >= self.tools_warn;
        let event = (is_many && !self.has_warned).then_some(Event::ToolsMany {
            count: self.declared.len(),
        });
        self.has_warned = is_many;
        event
    }

    /// Stops declaring tools. Those that are callable can still be called, and can be declared again.
    pub(crate) fn hide(&mut self, names: &[ToolName]) {
        let hidden: HashSet<_> = names.iter().collect();
        self.declared.retain(|tool| !hidden.contains(&tool.name));
        self.described.retain(|name| !hidden.contains(name));
        for name in names {
            if self.is_callable(name) {
                self.hidden.insert(name.clone());
            }
        }
    }

    fn is_callable(&self, name: &ToolName) -> bool {
        self.callable_tool(name).is_some()
    }
}
