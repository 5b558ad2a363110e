//! Tools that act on the current object of a type: the one that a result returned last.

use std::sync::Arc;

use async_trait::async_trait;

use toolwit_core::{Arguments, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolResult};

/// The part of a tool id that replaces the id of an entity, for methods of the current object.
const CURRENT: &str = "current";

/// Returns the id of a method that is bound to the current object.
pub(super) fn current_method_id(method: &ToolId) -> ToolId {
    method.unbound().bound_to(CURRENT)
}

/// Returns whether this is the id of a method that is bound to the current object.
pub(super) fn is_current_method(id: &ToolId) -> bool {
    id.as_str().ends_with("(current)")
}

/// Returns whether the tool is bound to an object.
pub(super) fn is_bound(tool: &Arc<dyn Tool>) -> bool {
    tool.decorated_tool().is_some()
}

/// A declared method without a current object.
pub(super) struct UnboundMethod {
    definition: ToolDefinition,
}

impl UnboundMethod {
    pub(super) fn new(method: &ToolDefinition, prefix: &str) -> Self {
        let mut definition = method.clone();
        definition.description = format!(
            "{} It acts on the `{prefix}` that a tool returned last.",
            method.description
        );
        definition.id = current_method_id(&method.id);
        Self { definition }
    }

    /// Returns the guidance that the model receives while no object is current.
    pub(super) fn guidance(name: &str) -> String {
        format!("`{name}` is not available yet: first call a tool that returns a single object for it to act on")
    }
}

#[async_trait]
impl Tool for UnboundMethod {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, _arguments: Arguments, _context: &ToolContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(Self::guidance(self.definition.name())))
    }
}
