//! Lookup of the tool that the user names.

use std::sync::Arc;

use crate::hint::discovery_error;
use toolwit::Toolwit;
use toolwit::registry::Registry;
use toolwit::sandbox::{EntityType, Plugin};
use toolwit::tool::{Tool, ToolDefinition};
use toolwit::{Error, ErrorKind, Phase};

/// Finds a callable tool by its id or name.
///
/// # Errors
/// The errors of [`Toolwit::find_tool`]; the error of its package if that is broken; [`ErrorKind::ToolUnavailable`] for a method of
/// an entity.
pub(crate) fn find_tool(host: &Toolwit, tools: &[Arc<dyn Tool>], wanted: &str) -> Result<Arc<dyn Tool>, Error> {
    Toolwit::find_tool(tools, wanted).map_err(|error| match error.kind {
        ErrorKind::UnknownTool => with_reason(error, host, wanted),
        _ => error,
    })
}

/// A method of an entity, in the form that takes the entity's id.
pub(crate) struct Method<'a> {
    pub(crate) plugin: &'a Arc<Plugin>,
    pub(crate) entity: &'a EntityType,
    pub(crate) definition: &'a ToolDefinition,
}

/// Finds a method of an entity by its id or name.
pub(crate) fn find_method<'a>(registry: &'a Registry, wanted: &str) -> Option<Method<'a>> {
    registry.plugins().find_map(|plugin| {
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

/// Replaces the error about an unknown tool by its cause, if that is known.
pub(crate) fn with_reason(unknown: Error, host: &Toolwit, wanted: &str) -> Error {
    let unknown = match unknown.suggestion {
        Some(_) => unknown,
        None if host.registry().packages().is_empty() => unknown
            .with_suggestion("the plugin directory has no `.wasm` file; `toolwit build DIR` builds one from source"),
        None => unknown.with_suggestion("`toolwit list` shows the tools that there are"),
    };
    let registry = host.registry();
    if let Some(method) = find_method(&registry, wanted) {
        return needs_entity(&method);
    }
    let packages = registry.packages();
    let broken: Vec<_> = packages
        .iter()
        .filter_map(|package| {
            Some((
                package.name.as_str(),
                package.reason().cloned().or_else(|| discovery_error(package))?,
            ))
        })
        .collect();
    let Some((_, first)) = broken.first() else {
        return unknown;
    };
    // An id begins with its plugin's name, and a plugin of one function is often called by its own.
    let owner = wanted.split(['/', '#']).next();
    if let Some((_, reason)) = broken.iter().find(|(name, _)| Some(*name) == owner) {
        return Error::clone(reason);
    }
    if broken.len() == packages.len() {
        return Error::clone(first);
    }
    let has_undiscovered = packages.iter().any(|package| discovery_error(package).is_some());
    let state = if has_undiscovered {
        "broken or their dynamic tools are not discovered"
    } else {
        "broken"
    };
    let names: Vec<_> = broken.iter().map(|(name, _)| format!("`{name}`")).collect();
    let hint = unknown
        .suggestion
        .as_deref()
        .unwrap_or_default()
        .trim_end_matches(['.', ' ']);
    let end = if hint.is_empty() || hint.ends_with('?') {
        ""
    } else {
        "."
    };
    let hint = format!(
        "{hint}{end} Tools are missing because these plugins are {state}: {}",
        names.join(", ")
    );
    Error::new(unknown.kind, unknown.phase, unknown.message.clone()).with_suggestion(hint.trim_start())
}

fn needs_entity(method: &Method<'_>) -> Error {
    let entity = &method.entity.name;
    let message = format!("it is a method of `{entity}`, and this conversation has no `{entity}` yet");
    Error::new(ErrorKind::ToolUnavailable, Phase::Validate, message)
        .with_plugin(method.plugin.name())
        .with_tool(method.definition.id.as_str())
        .with_suggestion(format!(
            "call a tool that returns a `{entity}` first; `--script FILE` makes several calls in one conversation"
        ))
}
