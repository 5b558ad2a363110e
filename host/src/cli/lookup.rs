//! Finding the tool that a person named.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Phase};
use crate::host::Toolwit;
use crate::plugin::{EntityType, Plugin};
use crate::tool::{Tool, ToolDefinition};

/// Finds a tool that can be called, by its id or name.
///
/// # Errors
/// What [`Toolwit::find`] says; the reason why its package is broken, where that keeps the tool away; and
/// [`ErrorKind::ToolUnavailable`] for a method of an entity.
pub(super) fn find_tool(host: &Toolwit, tools: &[Arc<dyn Tool>], wanted: &str) -> Result<Arc<dyn Tool>, Error> {
    host.find(tools, wanted).map_err(|error| match error.kind {
        ErrorKind::UnknownTool => find_reason(host, wanted).unwrap_or(error),
        _ => error,
    })
}

/// A method of an entity, in the form that takes the entity's id.
pub(super) struct Method<'a> {
    pub(super) plugin: &'a Arc<Plugin>,
    pub(super) entity: &'a EntityType,
    pub(super) definition: &'a ToolDefinition,
}

/// Finds a method of an entity by its id or name.
pub(super) fn find_method<'a>(host: &'a Toolwit, wanted: &str) -> Option<Method<'a>> {
    host.registry().plugins().find_map(|plugin| {
        plugin.inspection().entities.iter().find_map(|entity| {
            let is_wanted = |method: &&ToolDefinition| method.id.as_str() == wanted || method.name() == wanted;
            entity.methods.iter().find(is_wanted).map(|definition| Method {
                plugin,
                entity,
                definition,
            })
        })
    })
}

/// Says why a tool is not there, as far as that is known better than by its name.
fn find_reason(host: &Toolwit, wanted: &str) -> Option<Error> {
    if let Some(method) = find_method(host, wanted) {
        return Some(needs_entity(&method));
    }
    let packages = host.registry().packages();
    let broken = || packages.iter().filter_map(|package| Some((package, package.reason()?)));
    // An id begins with its plugin's name.
    let named = wanted.split(['/', '#']).next().filter(|_| wanted.contains('#'));
    if let Some((_, reason)) = broken().find(|(package, _)| Some(package.name.as_str()) == named) {
        return Some(reason.clone());
    }
    let (_, first) = broken().next()?;
    if broken().count() == packages.len() {
        return Some(first.clone());
    }
    let names: Vec<_> = broken().map(|(package, _)| format!("`{}`", package.name)).collect();
    Some(
        Error::new(
            ErrorKind::UnknownTool,
            Phase::Validate,
            format!("there is no tool `{wanted}`"),
        )
        .with_suggestion(format!(
            "it may belong to a plugin that is broken ({}); `toolwit list` shows why",
            names.join(", ")
        )),
    )
}

fn needs_entity(method: &Method<'_>) -> Error {
    let entity = &method.entity.name;
    let message = format!("it is a method of a `{entity}`, and a single call has none");
    Error::new(ErrorKind::ToolUnavailable, Phase::Validate, message)
        .with_plugin(method.plugin.name())
        .with_tool(method.definition.id.as_str())
        .with_suggestion(format!(
            "play several calls with `--script FILE`: one that returns a `{entity}`, then this one"
        ))
}
