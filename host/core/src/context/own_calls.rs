//! Calls of tools that the calling tool provides itself.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Arguments, StartingCall, Tool, ToolContext, ToolError, ToolResult};

/// Makes calls on behalf of a running call, to tools that its tool provides itself, such as the follow-up call of a result. Each
/// is a call of its own: it needs its own permission, and has its own id and its own idempotency key.
#[async_trait]
pub trait OwnCalls: Send + Sync {
    /// Runs a call. The inner result is that of the tool.
    ///
    /// # Errors
    /// As [`ToolContext::permit`]: the call is not permitted, and did not begin.
    async fn run(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<Result<ToolResult, ToolError>, ToolError>;
}

/// The extension with the calls of the call that has the context.
struct CallsExtension(Arc<dyn OwnCalls>);

impl ToolContext {
    /// Sets the object that makes the [own calls](Self::call_own_tool) of the call with this context.
    #[must_use]
    pub fn with_own_calls(self, calls: Arc<dyn OwnCalls>) -> Self {
        self.with_extension(CallsExtension(calls))
    }

    /// Calls a tool that the tool with this context provides itself. Outside a conversation, only
    /// [permits](Self::permit) and runs the call. The inner result is that of the tool.
    ///
    /// # Errors
    /// As [`permit`](Self::permit): the call is not permitted, and did not begin.
    pub async fn call_own_tool(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
    ) -> Result<Result<ToolResult, ToolError>, ToolError> {
        if let Some(CallsExtension(calls)) = self.extension() {
            return calls.run(tool, arguments, self).await;
        }
        let context = self.clone().for_new_call();
        let call = StartingCall::new("own-call", tool, arguments, &context);
        let permitted = context.permit(call).await?;
        Ok(tool.call(permitted.arguments, &context).await)
    }
}
