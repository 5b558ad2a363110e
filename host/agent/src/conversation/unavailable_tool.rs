//! Stand-ins for tools that could not be restored when the conversation was resumed.

use async_trait::async_trait;

use toolwit_core::{Arguments, CallAccess, Tool, ToolContext, ToolDefinition, ToolError, ToolName, ToolResult};
use toolwit_core::{Error, ErrorKind, Phase};

/// A stand-in for a tool that was injected before the resume and cannot be restored, because its implementation or its object
/// is missing. A call returns an error that names the tool whose call may inject the missing tool again.
pub(super) struct UnavailableTool {
    definition: ToolDefinition,
    /// The tool whose result injected the missing tool.
    trigger: ToolName,
}

impl UnavailableTool {
    pub(super) fn new(definition: &ToolDefinition, trigger: &ToolName) -> Self {
        Self {
            definition: definition.clone(),
            trigger: trigger.clone(),
        }
    }
}

#[async_trait]
impl Tool for UnavailableTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Returns read access, because a call only returns an error.
    async fn access(&self, _arguments: &Arguments, _context: &ToolContext) -> CallAccess {
        CallAccess::read()
    }

    async fn call(&self, _arguments: Arguments, _context: &ToolContext) -> Result<ToolResult, ToolError> {
        let message = "the object or the implementation of this tool is gone: the conversation was resumed without it";
        let error = Error::new(ErrorKind::EntityGone, Phase::Execute, message);
        let hint = format!("call `{}` again, so that its result adds the tool again", self.trigger);
        Err(ToolError::Model(error.with_suggestion(hint)))
    }
}
