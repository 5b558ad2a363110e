//! Tools that can be called and are not declared: evicted beyond the limit, or folded.

use super::Toolbox;
use crate::event::Event;
use toolwit_core::{ToolId, ToolLookup, ToolName};

impl Toolbox {
    /// Declares hidden tools again.
    pub(crate) fn restore(&mut self, names: &[ToolName]) -> Option<Event> {
        let mut restored = Vec::new();
        for name in names {
            if self.hidden.remove(name) && self.declare(name).is_some() {
                self.touch(name);
                restored.push(name.clone());
            }
        }
        (!restored.is_empty()).then_some(Event::ToolsRestored { names: restored })
    }

    /// Folds tools before the first inference of a turn. Initial tools stay declared.
    pub(super) fn fold(&mut self, tools: &[ToolId]) -> Option<Event> {
        let named = tools.iter().filter_map(|id| self.callable.by_id(id));
        let names: Vec<_> = named
            .map(|tool| tool.name.clone())
            .filter(|name| !self.fixed.contains(name) && !self.hidden.contains(name))
            .collect();
        self.hide(&names);
        (!names.is_empty()).then_some(Event::ToolsFolded { names })
    }

    /// Hides tools beyond the limit: first those that can no longer be called, then the least recently used. If the tools in
    /// `recent` alone exceed the limit, the last of them are hidden.
    pub(super) fn evict(&mut self, recent: &[ToolName]) -> Option<Event> {
        let excess = self.declared.len().checked_sub(self.tools_max).filter(|n| *n > 0)?;
        let mut candidates: Vec<_> = self
            .declared
            .iter()
            .enumerate()
            .filter(|(_, tool)| !self.fixed.contains(&tool.name))
            .map(|(at, tool)| {
                let is_recent = recent.contains(&tool.name);
                let order = if is_recent {
                    u64::MAX - at as u64
                } else {
                    self.last_use.get(&tool.name).copied().unwrap_or(0)
                };
                ((self.is_callable(&tool.name), is_recent, order), tool.name.clone())
            })
            .collect();
        candidates.sort();
        let names: Vec<_> = candidates.into_iter().take(excess).map(|(_, name)| name).collect();
        self.hide(&names);
        (!names.is_empty()).then_some(Event::ToolsEvicted { names })
    }

    /// Returns a warning each time the number of declared tools reaches `tools_warn`.
    pub(super) fn warn(&mut self) -> Option<Event> {
        let is_many = self.declared.len() >= self.tools_warn;
        let event = (is_many && !self.has_warned).then_some(Event::ToolsMany {
            count: self.declared.len(),
        });
        self.has_warned = is_many;
        event
    }

    /// Stops declaring tools. They can still be called.
    pub(crate) fn hide(&mut self, names: &[ToolName]) {
        self.declared.retain(|tool| !names.contains(&tool.name));
        self.described.retain(|name| !names.contains(name));
        for name in names {
            if self.is_callable(name) {
                self.hidden.insert(name.clone());
            }
        }
    }

    fn is_callable(&self, name: &ToolName) -> bool {
        matches!(self.callable.look_up(name.as_str()), ToolLookup::Found(_))
    }
}
