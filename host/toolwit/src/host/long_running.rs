//! Checks the ids of tools that the operator declares as long-running.

use super::find::{FindError, find};
use toolwit_core::ToolId;
use toolwit_core::text::snake_case;
use toolwit_registry::Registry;
use toolwit_sandbox::Scope;

/// Logs a warning for each id if it is certain that no plugin has a tool or a method with this id. This is not certain if
/// the plugin that the id names is broken or its dynamic tools are not discovered. An unknown id is not an error, because
/// the plugin may be installed later.
pub(super) fn warn_about_unknown_tools(registry: &Registry, long_running: &[ToolId]) {
    for id in long_running.iter().filter(|id| is_unknown(registry, id)) {
        let similar = similar_ids(registry, id.as_str());
        if similar.is_empty() {
            tracing::warn!("no plugin has the tool `{id}`, which is declared as long-running");
        } else {
            let similar = similar.join("` or `");
            tracing::warn!(
                "no plugin has the tool `{id}`, which is declared as long-running; did you mean `{similar}`?"
            );
        }
    }
}

/// Returns whether it is certain that no plugin has a tool or a method with this id.
fn is_unknown(registry: &Registry, id: &ToolId) -> bool {
    let package = registry.package(id.owner());
    let is_certain = package.is_none_or(|package| package.plugin().is_some() && package.discovery_error().is_none());
    is_certain && registry.definition(id.as_str()).is_none() && registry.method(id.as_str()).is_none()
}

/// Returns the ids of the tools whose name is the function name in `id`. If there are no such tools, returns the ids of
/// the tools with similar names.
fn similar_ids(registry: &Registry, id: &str) -> Vec<String> {
    let tools = registry.tools(&Scope::new());
    let function = id.rsplit(['#', '.', ']']).next().unwrap_or(id);
    match find(&tools, &snake_case(function)) {
        Ok(tool) => vec![tool.definition().id.to_string()],
        Err(FindError::Ambiguous { ids, .. }) => ids,
        Err(FindError::Unknown { nearest, .. }) => {
            let nearest_tools = nearest.iter().filter_map(|name| find(&tools, name).ok());
            nearest_tools.map(|tool| tool.definition().id.to_string()).collect()
        }
        Err(_) => Vec::new(),
    }
}
