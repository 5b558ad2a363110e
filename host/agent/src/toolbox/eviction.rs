//! Hidden tools, which can be called but are not declared: tools evicted beyond the limit, and folded tools.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::Toolbox;
use crate::event::Event;
use toolwit_core::{ToolId, ToolName};

impl Toolbox {
    /// Declares the hidden tools among `names` again. Returns the event for them, or `None` if no tool was hidden.
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

    /// Hides the injected tools among `tools`, which a strategy folds at the start of a turn. Returns the event for the
    /// tools that it hid, or `None` if it hid no tool.
    pub(super) fn fold(&mut self, tools: &[ToolId]) -> Option<Event> {
        let named = tools.iter().filter_map(|id| self.callable.by_id(id));
        let names: Vec<_> = named
            .map(|tool| tool.name.clone())
            .filter(|name| !self.configured.contains(name) && !self.hidden.contains(name))
            .collect();
        self.hide(&names);
        (!names.is_empty()).then_some(Event::ToolsFolded { names })
    }

    /// Hides declared tools until the limit on declared tools is met. Tools that can no longer be called are hidden
    /// first, then injected tools, then the tools of the application and of roles. In each group, the least recently
    /// used tools come first. The callable tools in `recent` are hidden only after all other tools: first the injected
    /// ones, and of these the last declared first. Tools of the host are never hidden. Returns the event for the hidden
    /// tools, or `None` if no tool was hidden.
    pub(super) fn evict(&mut self, recent: &[ToolName]) -> Option<Event> {
        let excess = self.declared.len().checked_sub(self.tools_max).filter(|n| *n > 0)?;
        let recent: HashSet<_> = recent.iter().collect();
        let declared = self.declared().iter().enumerate();
        let hideable = declared.filter(|(_, tool)| !tool.definition.id.is_host());
        let mut candidates: Vec<_> = hideable
            .map(|(position, tool)| {
                let name = &tool.name;
                let is_recent = recent.contains(name);
                let is_configured = self.configured.contains(name);
                let last_use = if is_recent {
                    0
                } else {
                    self.last_use.get(name).copied().unwrap_or(0)
                };
                let order = (
                    self.is_callable(name),
                    is_recent,
                    is_configured,
                    last_use,
                    Reverse(position),
                );
                (order, name.clone())
            })
            .collect();
        candidates.sort();
        let names: Vec<_> = candidates.into_iter().take(excess).map(|(_, name)| name).collect();
        self.hide(&names);
        (!names.is_empty()).then_some(Event::ToolsEvicted { names })
    }

    /// Returns a warning event if at least `tools_warn` tools are declared, and fewer were declared at the last check.
    pub(super) fn warn(&mut self) -> Option<Event> {
        let is_many = self.declared.len() >= self.tools_warn;
        let event = (is_many && !self.has_warned).then_some(Event::ManyToolsDeclared {
            count: self.declared.len(),
        });
        self.has_warned = is_many;
        event
    }

    /// Stops declaring these tools. The callable ones can still be called, and [`restore`](Self::restore) can declare
    /// them again.
    pub(crate) fn hide(&mut self, names: &[ToolName]) {
        let to_hide: HashSet<_> = names.iter().collect();
        self.declared.retain(|tool| !to_hide.contains(&tool.name));
        self.described.retain(|name| !to_hide.contains(name));
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
