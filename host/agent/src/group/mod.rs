//! Tools by the role that they play: `web`, `maps`, `crm`. What stands behind a role is configuration.

mod config;
mod resolver;
mod shelf;
mod source;

pub use config::{GroupConfig, GroupPermission, GroupsConfig};
pub use resolver::ToolGroups;
pub use shelf::SourceTools;
pub use source::{FixedTools, ToolSource};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use toolwit_core::Tool;

/// The tools behind a role.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolGroup {
    /// The role: `web`.
    pub role: String,
    /// What the tools are for.
    pub description: String,
    /// Who provides them.
    pub provider: Option<String>,
    /// What the tools may do, as whoever set the group up says; it is there to be shown and chosen by.
    pub permissions: BTreeSet<GroupPermission>,
    /// What else is said about the group.
    pub metadata: BTreeMap<String, Value>,
    /// The tools.
    pub tools: Vec<Arc<dyn Tool>>,
}

impl ToolGroup {
    /// Makes a group of tools.
    #[must_use]
    pub fn new(role: impl Into<String>, description: impl Into<String>, tools: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            role: role.into(),
            description: description.into(),
            provider: None,
            permissions: BTreeSet::new(),
            metadata: BTreeMap::new(),
            tools,
        }
    }

    /// Says what the tools may do.
    #[must_use]
    pub fn with_permission(mut self, permission: GroupPermission) -> Self {
        self.permissions.insert(permission);
        self
    }

    /// Says more about the group.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Keeps the tools that pass.
    #[must_use]
    pub fn filter_tools(mut self, keep: impl Fn(&dyn Tool) -> bool) -> Self {
        self.tools.retain(|tool| keep(tool.as_ref()));
        self
    }
}

#[cfg(test)]
mod tests;
