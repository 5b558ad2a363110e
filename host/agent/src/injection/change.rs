//! What a strategy wants changed.

use std::fmt;
use std::sync::Arc;

use serde_json::json;

use super::entities::{EntityBinding, EntityIdentity};
use super::shared::SharedEntities;
use toolwit_core::{AVAILABLE_TOOLS, Tool, ToolId, ToolResult, ToolSet, name_available_tools};

/// Tools to add and to remove, and what was found on the way.
///
/// Removals are applied before additions, so that a tool which is in both is there afterwards.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Injection {
    /// Tools that can be called from now on. One that is there already runs the new code under the same name.
    pub add: Vec<Arc<dyn Tool>>,
    /// Tools that can no longer be called.
    pub remove: Vec<ToolId>,
    /// Entities that were met.
    pub discovered: Vec<DiscoveredEntity>,
    /// Objects in the result that cannot become tools.
    pub rejected: Vec<RejectedProvider>,
    /// The tools that the result lists under [`AVAILABLE_TOOLS`](toolwit_core::AVAILABLE_TOOLS), whether new or not, in order.
    /// Those of them that were hidden are declared again, and their names are written into the list.
    pub listed: Vec<ToolId>,
    /// Tools that are no longer declared and can still be called. It holds at the beginning of a turn only.
    pub fold: Vec<ToolId>,
    /// Tools that were not brought in.
    pub withheld: Vec<WithheldTool>,
}

impl Injection {
    /// Changes nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds tools.
    #[must_use]
    pub fn add(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            add: tools,
            ..Self::default()
        }
    }

    /// Removes tools.
    #[must_use]
    pub fn remove(tools: Vec<ToolId>) -> Self {
        Self {
            remove: tools,
            ..Self::default()
        }
    }

    /// Puts tools in the place of one.
    #[must_use]
    pub fn replace(tool: ToolId, by: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            add: by,
            remove: vec![tool],
            ..Self::default()
        }
    }

    /// Takes in what another strategy wants.
    pub fn merge(&mut self, other: Self) {
        self.add.extend(other.add);
        self.remove.extend(other.remove);
        self.discovered.extend(other.discovered);
        self.rejected.extend(other.rejected);
        self.listed.extend(other.listed);
        self.fold.extend(other.fold);
        self.withheld.extend(other.withheld);
    }

    /// Tells whether nothing changes and nothing was found.
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

/// An entity in a result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveredEntity {
    /// Who it is; `None` for one that cannot be recognised when it is returned again.
    pub key: Option<EntityIdentity>,
    /// Its type, as in tool names.
    pub prefix: String,
    /// Its methods.
    pub tools: Vec<ToolId>,
    /// How many entities lie between it and a tool that was there from the start.
    pub depth: u32,
    /// Whether it is new, and which instance is bound from now on.
    pub binding: EntityBinding,
    /// All entities of the type that share these tools, where there are many.
    pub shared: Option<SharedEntities>,
    /// The namespace of its type.
    pub namespace: String,
}

/// An object in a result that cannot become tools; the value itself is returned all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RejectedProvider {
    /// Its type, as in tool names.
    pub prefix: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A tool that a strategy would not bring in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WithheldTool {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

impl WithheldTool {
    /// Describes a tool that is not brought in.
    #[must_use]
    pub fn new(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            reason: reason.into(),
        }
    }
}

/// Writes into the result of a facade the names under which its tools can be called, now that they were added to `tools`. A
/// list of which nothing came in goes.
pub(crate) fn write_facade_tool_names(result: &mut ToolResult, listed: &[ToolId], tools: &ToolSet) {
    if result.revealed_tools.is_none() {
        return;
    }
    let names: Vec<_> = listed
        .iter()
        .filter_map(|id| tools.by_id(id))
        .map(|tool| &tool.name)
        .collect();
    result.rewrite_value(|value| {
        let Some(list) = value.get_mut(AVAILABLE_TOOLS) else {
            return false;
        };
        *list = json!(names);
        if names.is_empty() && value.get("note").is_some() {
            value["note"] = json!("none of its tools can be opened here");
        }
        true
    });
}

/// Writes into a result the names under which the tools of its entities can be called, now that they were added to `tools`.
pub fn write_entity_tool_names(result: &mut ToolResult, discovered: &[DiscoveredEntity], tools: &ToolSet) {
    let mut left: Vec<_> = discovered.iter().collect();
    name_available_tools(result, |provider| {
        let id = provider.instance_id();
        let is_it = |found: &&DiscoveredEntity| match (&found.key, &id) {
            (Some(key), Some(id)) => {
                key.id == *id && key.prefix == provider.prefix() && key.namespace == provider.namespace()
            }
            (None, None) => found.prefix == provider.prefix(),
            (None, Some(_)) => found.shared.is_some() && found.prefix == provider.prefix(),
            _ => false,
        };
        let Some(at) = left.iter().position(is_it) else {
            return Vec::new();
        };
        let named = left.remove(at).tools.iter().filter_map(|id| tools.by_id(id));
        named.map(|tool| tool.name.clone()).collect()
    });
}
