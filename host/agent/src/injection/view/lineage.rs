//! The parents of injected tools.

use std::collections::HashMap;

use toolwit_core::ToolId;

/// Maps each injected tool to its parent: the tool whose result injected it.
#[derive(Clone, Debug, Default)]
pub struct Lineage {
    parents: HashMap<ToolId, ToolId>,
    /// The inverse of `parents`: the tools that each tool injected, in the order in which they were recorded.
    children: HashMap<ToolId, Vec<ToolId>>,
}

impl Lineage {
    /// Records the parent of a tool. A tool keeps its first parent, and is never its own parent.
    pub fn record(&mut self, tool: ToolId, parent: ToolId) {
        if tool != parent && !self.parents.contains_key(&tool) {
            self.children.entry(parent.clone()).or_default().push(tool.clone());
            self.parents.insert(tool, parent);
        }
    }

    /// Returns the tool whose result injected this one, or `None` if no result injected it.
    #[must_use]
    pub fn parent(&self, tool: &ToolId) -> Option<&ToolId> {
        self.parents.get(tool)
    }

    /// Returns the tools that the results of this one injected, in the order in which they were recorded.
    #[must_use]
    pub fn children(&self, tool: &ToolId) -> &[ToolId] {
        self.children.get(tool).map_or(&[], Vec::as_slice)
    }

    /// Returns the parent of a tool, the parent's parent and so on.
    pub fn ancestors<'a>(&'a self, tool: &ToolId) -> impl Iterator<Item = &'a ToolId> + use<'a> {
        // `take` ends the iteration if the recorded parents form a cycle.
        std::iter::successors(self.parent(tool), |tool| self.parent(tool)).take(self.parents.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_are_ordered_nearest_first_and_are_finite_in_a_cycle() {
        let id = ToolId::native;
        let mut lineage = Lineage::default();
        lineage.record(id("b"), id("a"));
        lineage.record(id("c"), id("b"));
        lineage.record(id("b"), id("x"));
        assert_eq!(lineage.ancestors(&id("c")).collect::<Vec<_>>(), [&id("b"), &id("a")]);
        lineage.record(id("a"), id("c"));
        assert_eq!(lineage.ancestors(&id("c")).count(), 3, "the cycle is visited once");
    }
}
