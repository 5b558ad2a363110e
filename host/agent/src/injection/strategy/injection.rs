//! The changes that a strategy requests.

use std::fmt;
use std::sync::Arc;

use crate::injection::entity::DiscoveredEntity;
use toolwit_core::{RejectedProvider, Tool, ToolId, ToolName};

/// The changes that a strategy requests: above all, tools to add and to remove. It also lists the entities that the strategy
/// found in a result.
///
/// Removals are applied before additions: a tool that is in both lists is present afterwards.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Injection {
    /// Tools to add. A tool whose id is already present replaces the old implementation under the same name.
    pub add: Vec<Arc<dyn Tool>>,
    /// Tools to remove.
    pub remove: Vec<ToolId>,
    /// Entities that the result holds, and groups of entities.
    pub discovered: Vec<DiscoveredEntity>,
    /// Objects in the result that cannot become tools.
    pub rejected: Vec<RejectedProvider>,
    /// Tools that the result of a facade lists under [`AVAILABLE_TOOLS`](toolwit_core::AVAILABLE_TOOLS), in order. Each of them
    /// is in `add`, or the conversation already has it. The loop writes their names into the result, and declares the hidden
    /// ones again.
    pub listed: Vec<ToolId>,
    /// Tools to stop declaring. They can still be called. The loop reads this list only from
    /// [`begin_turn`](super::InjectionStrategy::begin_turn).
    pub fold: Vec<ToolId>,
    /// Tools that the strategy refused to add.
    pub withheld: Vec<WithheldTool>,
}

impl Injection {
    /// Creates an injection without changes.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates an injection that adds tools.
    #[must_use]
    pub fn add(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            add: tools,
            ..Self::default()
        }
    }

    /// Creates an injection that removes tools.
    #[must_use]
    pub fn remove(tools: Vec<ToolId>) -> Self {
        Self {
            remove: tools,
            ..Self::default()
        }
    }

    /// Creates an injection that replaces one tool with others.
    #[must_use]
    pub fn replace(tool: ToolId, replacements: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            add: replacements,
            remove: vec![tool],
            ..Self::default()
        }
    }

    /// Appends the changes of another strategy.
    pub fn merge(&mut self, other: Self) {
        self.add.extend(other.add);
        self.remove.extend(other.remove);
        self.discovered.extend(other.discovered);
        self.rejected.extend(other.rejected);
        self.listed.extend(other.listed);
        self.fold.extend(other.fold);
        self.withheld.extend(other.withheld);
    }

    /// Returns whether all lists are empty.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.add.is_empty()
            && self.remove.is_empty()
            && self.discovered.is_empty()
            && self.rejected.is_empty()
            && self.listed.is_empty()
            && self.fold.is_empty()
            && self.withheld.is_empty()
    }
}

impl fmt::Debug for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let added: Vec<_> = self.add.iter().map(|tool| &tool.definition().id).collect();
        f.debug_struct("Injection")
            .field("add", &added)
            .field("remove", &self.remove)
            .field("discovered", &self.discovered)
            .field("rejected", &self.rejected)
            .finish()
    }
}

/// An injection, with the tool whose call it follows from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TriggeredInjection {
    /// Name of the tool, which becomes the parent of the added tools.
    pub trigger: ToolName,
    /// The changes.
    pub injection: Injection,
}

impl TriggeredInjection {
    /// Creates an injection that follows from a call of `trigger`.
    #[must_use]
    pub fn new(trigger: ToolName, injection: Injection) -> Self {
        Self { trigger, injection }
    }
}

/// A tool that a strategy refused to add.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WithheldTool {
    /// Name of the tool.
    pub name: String,
    /// Reason for withholding it.
    pub reason: String,
}

impl WithheldTool {
    /// Describes a withheld tool.
    #[must_use]
    pub fn new(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            reason: reason.into(),
        }
    }
}
