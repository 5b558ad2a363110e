//! Which tool brought which.

use std::collections::HashMap;

use toolwit_core::ToolId;

/// Remembers, for each tool that came into a conversation, the tool whose result brought it.
#[derive(Clone, Debug, Default)]
pub struct Lineage {
    parents: HashMap<ToolId, ToolId>,
}

impl Lineage {
    /// Remembers who brought a tool. The first one stays.
    pub fn record(&mut self, tool: ToolId, brought_by: ToolId) {
        if tool != brought_by {
            self.parents.entry(tool).or_insert(brought_by);
        }
    }

    /// Returns the tool whose result brought this one; `None` for one that was there from the start.
    #[must_use]
    pub fn parent(&self, tool: &ToolId) -> Option<&ToolId> {
        self.parents.get(tool)
    }

    /// Returns the tools that led to this one, the nearest first.
    pub fn ancestors<'a>(&'a self, tool: &ToolId) -> impl Iterator<Item = &'a ToolId> + use<'a> {
        // No chain is longer than the map, whatever was recorded.
        std::iter::successors(self.parent(tool), |tool| self.parent(tool)).take(self.parents.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_are_told_from_the_nearest_on_and_end() {
        let id = ToolId::native;
        let mut lineage = Lineage::default();
        lineage.record(id("b"), id("a"));
        lineage.record(id("c"), id("b"));
        lineage.record(id("b"), id("x"));
        assert_eq!(lineage.ancestors(&id("c")).collect::<Vec<_>>(), [&id("b"), &id("a")]);
        lineage.record(id("a"), id("c"));
        assert_eq!(lineage.ancestors(&id("c")).count(), 3, "a circle ends too");
    }
}
