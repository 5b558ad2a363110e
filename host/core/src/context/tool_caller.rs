//! Nested calls: tools that call tools.

use async_trait::async_trait;

use crate::{Arguments, Effect, ToolContext, ToolError, ToolResult};

/// Calls the tools of a conversation on behalf of one of its tools.
///
/// The calling tool passes its own [`ToolContext`], so that the nested call has the same cancellation token, limits and output.
#[async_trait]
pub trait ToolCaller: Send + Sync {
    /// Calls a tool by its [id](crate::ToolId).
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTool`](crate::ErrorKind::UnknownTool) for an unknown id; otherwise as [`ToolContext::permit`] and
    /// [`Tool::call`](crate::Tool::call).
    async fn call_tool(&self, id: &str, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError>;

    /// Returns the effect of a call with empty arguments, for a caller that does not know the arguments yet. Returns `None` if
    /// the effect is unknown, for example because no tool has this id.
    async fn effect_of(&self, _id: &str, _context: &ToolContext) -> Option<Effect> {
        None
    }
}
