//! Tools that act on whichever object is the current one.

use std::sync::Arc;

use async_trait::async_trait;

use toolwit_core::text::snake_case;
use toolwit_core::{Arguments, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolResult};

/// What stands in the place of an entity's id.
const CURRENT: &str = "current";

/// The identity of a method bound to whichever object is the current one.
pub(super) fn current(method: &ToolId) -> ToolId {
    method.unbound().bound_to(CURRENT)
}

pub(super) fn is_current(id: &ToolId) -> bool {
    id.as_str().ends_with("(current)")
}

/// Tells whether there is an object behind the tool.
pub(super) fn is_bound(tool: &Arc<dyn Tool>) -> bool {
    tool.decorated_tool().is_some()
}

/// The name of a method without an entity's id in it: `customer_get_average_spend`.
pub(super) fn current_name(prefix: &str, id: &ToolId) -> String {
    let unbound = id.unbound();
    let method = unbound.as_str().rsplit(['.', '#']).next().unwrap_or_default();
    format!("{prefix}_{}", snake_case(method))
}

/// A method that waits for an object.
pub(super) struct Waiting {
    definition: ToolDefinition,
}

impl Waiting {
    pub(super) fn new(method: &ToolDefinition, prefix: &str) -> Self {
        let mut definition = method.clone();
        definition.description = format!(
            "{} It acts on the `{prefix}` that a tool returned last.",
            method.description
        );
        definition.id = current(&method.id);
        Self { definition }
    }

    /// What the model reads while there is no object.
    pub(super) fn told(name: &str) -> String {
        format!("`{name}` is not available yet: call a tool that returns the one object that it shall act on first")
    }
}

#[async_trait]
impl Tool for Waiting {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, _arguments: Arguments, _context: &ToolContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(Self::told(self.definition.name())))
    }
}
