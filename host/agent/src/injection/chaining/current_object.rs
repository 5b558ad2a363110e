//! Tools that act on the current object of a type: the object that a result returned last.

use std::sync::Arc;

use async_trait::async_trait;

use toolwit_core::{
    Arguments, CallAccess, Tool, ToolContext, ToolDefinition, ToolError, ToolExt, ToolId, ToolResult, decorator_chain,
};

/// The [selection](ToolId::bound_by) in the id of a method of the current object: `…#func(*current)`.
const CURRENT_SELECTION: &str = "current";

/// Returns the id under which a method acts on the current object.
pub(super) fn current_method_id(method: &ToolId) -> ToolId {
    method.unbound().bound_by(CURRENT_SELECTION)
}

/// Returns whether this is the id of a method that acts on the current object.
pub(super) fn is_current_method(id: &ToolId) -> bool {
    *id == current_method_id(id)
}

/// Returns whether a method of the current object is bound to an object: whether [`bound_method`] created the tool.
///
/// [`bound_method`] gives the object's method a new definition. The decorator chain then has a layer with an inner tool and
/// without a decorator. A [`MethodWithoutObject`] has no inner tool, and each layer around it has a decorator.
pub(super) fn is_bound(tool: &Arc<dyn Tool>) -> bool {
    decorator_chain(tool).any(|layer| layer.inner_tool().is_some() && layer.decorator().is_none())
}

/// Converts a method of an object to a method of the current object. It has the same description as the
/// [`MethodWithoutObject`] for this method.
pub(super) fn bound_method(method: Arc<dyn Tool>, prefix: &str, id: ToolId, names: Vec<String>) -> Arc<dyn Tool> {
    let description = current_method_description(&method.definition().description, prefix);
    Arc::new(method.with_identity(id, names).with_description(description))
}

fn current_method_description(description: &str, prefix: &str) -> String {
    let text = format!("{description} It acts on the `{prefix}` that a tool returned last.");
    text.trim_start().to_owned()
}

/// A method of the current object of a type, as long as the conversation has no current object of this type.
pub(super) struct MethodWithoutObject {
    definition: ToolDefinition,
}

impl MethodWithoutObject {
    /// Creates the tool from the definition of a method of the type `prefix`.
    pub(super) fn new(method: &ToolDefinition, prefix: &str) -> Self {
        let mut definition = method.clone();
        definition.description = current_method_description(&method.description, prefix);
        definition.id = current_method_id(&method.id);
        Self { definition }
    }

    /// Returns the guidance for a model that calls the tool `name` while the conversation has no current object.
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
