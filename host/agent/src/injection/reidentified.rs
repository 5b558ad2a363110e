//! A tool under another id.

use std::sync::Arc;

use async_trait::async_trait;

use toolwit_core::{Arguments, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolResult};

/// A tool under another id and, optionally, other names. A call runs the original tool.
pub(super) struct ReidentifiedTool {
    definition: ToolDefinition,
    tool: Arc<dyn Tool>,
}

impl ReidentifiedTool {
    pub(super) fn new(id: ToolId, tool: Arc<dyn Tool>) -> Self {
        let mut definition = tool.definition().clone();
        definition.id = id;
        Self { definition, tool }
    }

    pub(super) fn with_names(mut self, names: Vec<String>) -> Self {
        self.definition.names = names;
        self
    }
}

#[async_trait]
impl Tool for ReidentifiedTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        self.tool.call(arguments, context).await
    }

    fn decorated_tool(&self) -> Option<&Arc<dyn Tool>> {
        Some(&self.tool)
    }

    fn serial_group(&self) -> Option<u64> {
        self.tool.serial_group()
    }
}
