//! Tools of objects.

use std::sync::Arc;

use toolwit_core::{Error, ErrorKind, Phase, Tool};

/// Adds the tools of an object.
///
/// # Errors
/// [`ErrorKind::Configuration`] if a tool would replace the tool of another object of the type, because both have the same id.
pub(super) fn add_object_tools(tools: &mut Vec<Arc<dyn Tool>>, added: Vec<Arc<dyn Tool>>) -> Result<(), Error> {
    let has_twin = |tool: &&Arc<dyn Tool>| {
        let id = &tool.definition().id;
        tools.iter().any(|present| present.definition().id == *id)
    };
    if let Some(twin) = added.iter().find(has_twin) {
        let message = format!(
            "the tool `{}` of an object has the same id as that of another object: `{}`",
            twin.definition().name(),
            twin.definition().id
        );
        return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(
            "give the objects ids with `#[tool(id = …)]` on the `impl` block, or other names with `ToolObject::with_names`",
        ));
    }
    tools.extend(added);
    Ok(())
}
