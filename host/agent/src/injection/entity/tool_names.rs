//! Writes the tool names of entities into the result that returned them.

use super::discovered_entity::DiscoveredEntity;
use toolwit_core::{ToolProvider, ToolResult, ToolSet, name_available_tools};

/// Writes the tool names of a result's entities into the result. Call it after the tools were added to `tools`, which
/// assigns the names.
pub fn write_entity_tool_names(result: &mut ToolResult, discovered: &[DiscoveredEntity], tools: &ToolSet) {
    let mut remaining: Vec<_> = discovered.iter().collect();
    name_available_tools(result, |provider| {
        let Some(at) = remaining.iter().position(|found| is_same_entity(found, provider)) else {
            return Vec::new();
        };
        let named = remaining.remove(at).tools.iter().filter_map(|id| tools.by_id(id));
        named.map(|tool| tool.name.clone()).collect()
    });
}

fn is_same_entity(found: &DiscoveredEntity, provider: &dyn ToolProvider) -> bool {
    match (&found.identity, provider.instance_id()) {
        (Some(key), Some(id)) => {
            key.id == id && key.prefix == provider.prefix() && key.namespace == provider.namespace()
        }
        (None, None) => found.prefix == provider.prefix(),
        (None, Some(_)) => found.shared.is_some() && found.prefix == provider.prefix(),
        (Some(_), None) => false,
    }
}
