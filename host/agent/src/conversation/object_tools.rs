//! Adds the tools of Rust objects ([`ToolObject`](toolwit_core::ToolObject)) to the initial tools of a loop.

use std::sync::Arc;

use toolwit_core::{Error, ErrorKind, Phase, Tool};

/// Adds the tools of one object to `tools`, the initial tools of a loop.
///
/// # Errors
/// [`ErrorKind::Configuration`] if a tool of the object has the same id as an earlier tool. For example, the earlier tool can
/// belong to another object of the same type. Without the error, the tool of the object would replace the earlier tool.
pub(super) fn add_object_tools(tools: &mut Vec<Arc<dyn Tool>>, object_tools: Vec<Arc<dyn Tool>>) -> Result<(), Error> {
    let is_taken = |tool: &&Arc<dyn Tool>| {
        let id = &tool.definition().id;
        tools.iter().any(|earlier| earlier.definition().id == *id)
    };
    if let Some(duplicate) = object_tools.iter().find(is_taken) {
        let message = format!(
            "the tool `{}` of an object has the same id as an earlier tool: `{}`",
            duplicate.definition().name(),
            duplicate.definition().id
        );
        return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(
            "give the objects ids with `#[tool(id = …)]` on the `impl` block, or other names with `ToolObject::with_names`",
        ));
    }
    tools.extend(object_tools);
    Ok(())
}
