//! Writes the tool names of entities into the result that returned them.

use super::discovered_entity::DiscoveredEntity;
use super::entities::Entities;
use super::numbered_object::write_numbers;
use toolwit_core::{ToolProvider, ToolResult, ToolSet, name_available_tools};

/// Writes the tool names of a result's entities into the result. The names of a group's shared methods are listed once, at the
/// first member in the result. Also writes the numbers of objects without an id. Call this function after the tools were added to
/// `tools`, which assigns the names.
pub fn write_entity_tool_names(
    result: &mut ToolResult,
    discovered: &[DiscoveredEntity],
    entities: &Entities,
    tools: &ToolSet,
) {
    write_numbers(result, discovered, entities);
    let mut remaining_entities: Vec<_> = discovered.iter().collect();
    name_available_tools(result, |provider| {
        let Some(position) = remaining_entities
            .iter()
            .position(|entity| represents(entity, provider))
        else {
            return Vec::new();
        };
        let entity_tools = remaining_entities
            .remove(position)
            .tools
            .iter()
            .filter_map(|id| tools.by_id(id));
        entity_tools.map(|tool| tool.name.clone()).collect()
    });
}

/// Returns whether `discovered` is the record of the object `provider`, or of a group for objects of its type.
fn represents(discovered: &DiscoveredEntity, provider: &dyn ToolProvider) -> bool {
    let is_same_type = discovered.prefix == provider.prefix() && discovered.namespace == provider.namespace();
    is_same_type
        && match (&discovered.identity, provider.instance_id()) {
            (Some(identity), Some(id)) => identity.id == id,
            (None, None) => true,
            (None, Some(_)) => discovered.group_addition.is_some(),
            (Some(_), None) => false,
        }
}
