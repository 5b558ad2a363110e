//! Nested calls: tools that call tools.

use async_trait::async_trait;

use crate::{Arguments, Error, ErrorKind, Phase, ToolContext, ToolError, ToolResult, ToolSet};

/// Calls the tools of a conversation on behalf of one of its tools.
///
/// The calling tool passes its own [`ToolContext`], so that cancellation, limits and output stay the same.
#[async_trait]
pub trait ToolCaller: Send + Sync {
    /// Calls a tool by its [id](crate::ToolId).
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTool`] for an unknown id; otherwise as [`Tool::call`](crate::Tool::call).
    async fn call_tool(&self, id: &str, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError>;
}

#[async_trait]
impl ToolCaller for ToolSet {
    async fn call_tool(&self, id: &str, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Some(named) = self.iter().find(|named| named.definition.id.as_str() == id) else {
            let message = format!("there is no tool `{}`", id.chars().take(200).collect::<String>());
            return Err(ToolError::Model(Error::new(
                ErrorKind::UnknownTool,
                Phase::Validate,
                message,
            )));
        };
        named.tool.call(arguments, context).await
    }
}
