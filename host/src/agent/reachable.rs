//! The tools of a conversation, for a tool that calls others.

use async_trait::async_trait;

use crate::injection::{Chain, InjectionStrategy};
use crate::tool::{Arguments, ToolCaller, ToolContext, ToolError, ToolId, ToolResult, ToolSet};

/// What could be called at the moment when a call began, and what the strategies can bring: the tools of a registry that the
/// model has not found yet are there for a plugin to which they were granted.
pub(super) struct Reachable {
    tools: ToolSet,
    strategy: Chain,
}

impl Reachable {
    pub(super) fn new(tools: ToolSet, strategy: Chain) -> Self {
        Self { tools, strategy }
    }
}

#[async_trait]
impl ToolCaller for Reachable {
    async fn call_tool(&self, id: &str, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let wanted = ToolId::from_text(id);
        if self.tools.was_ever(&wanted) {
            return self.tools.call_tool(id, arguments, context).await;
        }
        match self.strategy.restore(&wanted) {
            Some(tool) => tool.call(arguments, context).await,
            None => self.tools.call_tool(id, arguments, context).await,
        }
    }
}
