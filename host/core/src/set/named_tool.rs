//! A tool with its name in a set.

use std::sync::Arc;

use crate::{Tool, ToolDefinition, ToolId, ToolName};

/// A tool of a conversation with its name, which never changes.
#[derive(Clone)]
pub struct NamedTool {
    /// The name that the model sees.
    pub name: ToolName,
    /// The definition of the tool.
    pub definition: Arc<ToolDefinition>,
    /// The tool that runs.
    pub tool: Arc<dyn Tool>,
}

/// The outcome of adding a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddOutcome {
    /// The tool was added, or added again after it was removed.
    New(ToolName),
    /// The set already had a tool with this id. Calls run the new tool, whose description and schemas are the same.
    Rebound(ToolName),
    /// The set already had a tool with this id. Calls run the new tool, which has another description or other schemas.
    Redefined(ToolName),
    /// The tool was not added, because it is excluded from the set.
    Excluded(ToolName),
}

impl AddOutcome {
    /// Returns the name of the tool.
    #[must_use]
    pub fn name(&self) -> &ToolName {
        match self {
            Self::New(name) | Self::Rebound(name) | Self::Redefined(name) | Self::Excluded(name) => name,
        }
    }
}

/// The outcome of looking up a name.
#[derive(Clone)]
pub enum ToolLookup {
    /// A tool that can be called.
    Found(NamedTool),
    /// The name belongs to the tool with this id, which was removed from the conversation or is excluded from it.
    Removed(ToolId),
    /// The name is unknown. These are the most similar names, best first.
    Unknown(Vec<ToolName>),
}
