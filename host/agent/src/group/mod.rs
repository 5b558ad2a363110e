//! Tool groups: tools by role, such as `web`, `maps` or `crm`. Configuration maps each role to tools.

mod config;
mod configured_group;
mod source;
mod source_cache;
mod source_tools;
mod tool_groups;

pub use config::{GroupConfig, GroupPermission, GroupsConfig};
pub use source::{FixedTools, ToolSource};
pub(crate) use source_cache::SourceCache;
pub use source_tools::SourceTools;
pub use tool_groups::ToolGroups;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use toolwit_core::Tool;

/// The tools of a role.
#[derive(Clone)]
pub struct ToolGroup {
    /// Role, such as `web`.
    pub role: String,
    /// Purpose of the tools.
    pub description: String,
    /// Name of the only source of the tools; `None` for a group that is built in code, or that uses all sources.
    pub provider: Option<String>,
    /// Declared permissions of the tools. They are informational and grant nothing.
    pub permissions: BTreeSet<GroupPermission>,
    /// Further properties of the group.
    pub metadata: BTreeMap<String, Value>,
    /// Tools of the group.
    pub tools: Vec<Arc<dyn Tool>>,
}

impl ToolGroup {
    /// Creates a group of tools, without a provider, permissions and metadata.
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

    /// Declares a permission of the tools.
    #[must_use]
    pub fn with_permission(mut self, permission: GroupPermission) -> Self {
        self.permissions.insert(permission);
        self
    }

    /// Sets a further property of the group.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Removes the tools that `keep` does not accept.
    #[must_use]
    pub fn with_filter(mut self, keep: impl Fn(&dyn Tool) -> bool) -> Self {
        self.tools.retain(|tool| keep(tool.as_ref()));
        self
    }
}

#[cfg(test)]
mod tests;
