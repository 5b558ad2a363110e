//! Tools that act on the current object of a type: the one that a result returned last.

use std::sync::Arc;

use async_trait::async_trait;

use toolwit_core::{
    Arguments, CallAccess, Tool, ToolContext, ToolDefinition, ToolError, ToolExt, ToolId, ToolResult, decorator_chain,
};

/// The text that stands for the entity in the id of a method of the current object: `…#func(*current)`.
const CURRENT: &str = "current";

/// Returns the id of a method that is bound to the current object.
pub(super) fn current_method_id(method: &ToolId) -> ToolId {
    method.unbound().bound_by(CURRENT)
}

/// Returns whether this is the id of a method that is bound to the current object.
pub(super) fn is_current_method(id: &ToolId) -> bool {
    *id == current_method_id(id)
}

/// Returns whether a method of the current object is bound to an object, so that [`bound_method`] created the tool below the
/// decorators. That tool gives the method of an object a new definition, and is not a decorator itself. A
/// [`MethodWithoutObject`] does not contain another tool.
pub(super) fn is_bound(tool: &Arc<dyn Tool>) -> bool {
    decorator_chain(tool).any(|layer| layer.decorated_tool().is_some() && layer.decorator().is_none())
}

/// Returns the method of an object as the method of the current object, with the same description as its
/// [`MethodWithoutObject`].
pub(super) fn bound_method(method: Arc<dyn Tool>, prefix: &str, id: ToolId, names: Vec<String>) -> Arc<dyn Tool> {
    let description = description_of_current(&method.definition().description, prefix);
    Arc::new(method.with_identity(id, names).with_description(description))
}

fn description_of_current(description: &str, prefix: &str) -> String {
    format!("{description} It acts on the `{prefix}` that a tool returned last.")
}

/// A method of the current object while no object is current.
pub(super) struct MethodWithoutObject {
    definition: ToolDefinition,
}

impl MethodWithoutObject {
    /// Creates the tool from the definition of a method of the type `prefix`.
    pub(super) fn new(method: &ToolDefinition, prefix: &str) -> Self {
        let mut definition = method.clone();
        definition.description = description_of_current(&method.description, prefix);
        definition.id = current_method_id(&method.id);
        Self { definition }
    }

    /// Returns the guidance that the model receives while no object is current.
    pub(super) fn guidance(name: &str) -> String {
        format!("`{name}` is not available yet: first call a tool that returns a single object for it to act on")
    }
}

#[async_trait]
impl Tool for MethodWithoutObject {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Returns read access, because a call only returns guidance.
    async fn access(&self, _arguments: &Arguments, _context: &ToolContext) -> CallAccess {
        CallAccess::read()
    }

    async fn call(&self, _arguments: Arguments, _context: &ToolContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(Self::guidance(self.definition.name())))
    }
}
