//! Tools that can be called and are not declared: evicted for want of room, or folded up.

use super::Toolbox;
use crate::event::Event;
use toolwit_core::{ToolId, ToolLookup, ToolName};

impl Toolbox {
    /// Declares those of the named tools that were hidden.
    pub(crate) fn restore(&mut self, names: &[ToolName]) -> Option<Event> {
        let mut back = Vec::new();
        for name in names {
            if self.hidden.remove(name) && self.show(name).is_some() {
                self.touch(name);
                back.push(name.clone());
            }
        }
        (!back.is_empty()).then_some(Event::ToolsRestored { names: back })
    }

    /// Folds tools up, before the model is asked for the first time in a turn. What was there from the start stays.
    pub(super) fn fold(&mut self, tools: &[ToolId]) -> Option<Event> {
        let named = tools.iter().filter_map(|id| self.callable.by_id(id));
        let names: Vec<_> = named
            .map(|tool| tool.name.clone())
            .filter(|name| !self.fixed.contains(name) && !self.hidden.contains(name))
            .collect();
        self.hide(&names);
        (!names.is_empty()).then_some(Event::ToolsFolded { names })
    }

    /// Hides as many tools as are too many: those that cannot be called any more, then those not used for longest. Of the
    /// tools that just came in, the last ones go when they alone are too many.
    pub(super) fn evict(&mut self, fresh: &[ToolName]) -> Option<Event> {
        let excess = self.declared.len().checked_sub(self.tools_max).filter(|n| *n > 0)?;
        let mut candidates: Vec<_> = self
            .declared
            .iter()
            .enumerate()
            .filter(|(_, tool)| !self.fixed.contains(&tool.name))
            .map(|(at, tool)| {
                let is_fresh = fresh.contains(&tool.name);
                let order = if is_fresh {
                    u64::MAX - at as u64
                } else {
                    self.used.get(&tool.name).copied().unwrap_or(0)
                };
                ((self.is_callable(&tool.name), is_fresh, order), tool.name.clone())
            })
            .collect();
        candidates.sort();
        let names: Vec<_> = candidates.into_iter().take(excess).map(|(_, name)| name).collect();
        self.hide(&names);
        (!names.is_empty()).then_some(Event::ToolsEvicted { names })
    }

    /// Warns once, each time the number of declared tools grows to where models choose badly.
    pub(super) fn warn(&mut self) -> Option<Event> {
        let many = self.declared.len() >= self.tools_warn;
        let event = (many && !self.warned).then_some(Event::ToolsMany {
            count: self.declared.len(),
        });
        self.warned = many;
        event
    }

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
