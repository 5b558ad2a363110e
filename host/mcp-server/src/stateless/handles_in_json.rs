//! Handles in arguments and results.

use serde_json::{Value, json};

use super::catalog::Catalog;
use super::fixed_method::EntityKind;
use toolwit::ToolResult;
use toolwit::tool::AVAILABLE_TOOLS;

/// The property of an entity's JSON with its handle.
const HANDLE: &str = "handle";

/// Returns the entities in a result: objects that represent one of its live objects.
pub(super) fn entities_in(result: &ToolResult, catalog: &Catalog) -> Vec<(EntityKind, String)> {
    let mut found = Vec::new();
    let kinds = kinds_of(result, catalog);
    if let Some(value) = result.value.as_ref().filter(|_| !kinds.is_empty()) {
        collect(value, &kinds, &mut found);
    }
    found
}

/// Writes handles into the entities of a result, and the names of the tools that take them. `handles` are in the order of
/// [`entities_in`].
pub(super) fn write_handles(result: &mut ToolResult, handles: Vec<Option<String>>, catalog: &Catalog) {
    let kinds = kinds_of(result, catalog);
    let mut handles = handles.into_iter();
    result.rewrite_value(|value| write(value, &kinds, &mut handles, catalog));
}

/// The types of a result's live objects, each with an id if it has one.
fn kinds_of(result: &ToolResult, catalog: &Catalog) -> Vec<(EntityKind, Option<String>)> {
    let kind = |provider: &std::sync::Arc<dyn toolwit::tool::ToolProvider>| {
        let kind = EntityKind {
            plugin: provider.namespace().split('@').next().unwrap_or_default().to_owned(),
            name: provider.prefix().to_owned(),
        };
        catalog.methods(&kind)?;
        Some((kind, provider.instance_id()))
    };
    result.providers.iter().filter_map(kind).collect()
}

/// Returns the type and the id of an object that represents an entity.
fn entity<'k>(value: &Value, kinds: &'k [(EntityKind, Option<String>)]) -> Option<(&'k EntityKind, String)> {
    let fields = value.as_object()?;
    let (name, id) = (fields.get("type")?.as_str()?, fields.get("id")?.as_str()?);
    let is_it = |(kind, known): &&(EntityKind, Option<String>)| {
        kind.name == name && known.as_ref().is_none_or(|known| known == id)
    };
    kinds.iter().find(is_it).map(|(kind, _)| (kind, id.to_owned()))
}

fn collect(value: &Value, kinds: &[(EntityKind, Option<String>)], found: &mut Vec<(EntityKind, String)>) {
    if let Some((kind, id)) = entity(value, kinds) {
        found.push((kind.clone(), id));
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, kinds, found)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, kinds, found)),
        _ => {}
    }
}

fn write(
    value: &mut Value,
    kinds: &[(EntityKind, Option<String>)],
    handles: &mut impl Iterator<Item = Option<String>>,
    catalog: &Catalog,
) -> bool {
    let mut has_changed = false;
    if let Some((kind, _)) = entity(value, kinds)
        && let Some(Some(handle)) = handles.next()
        && let Some(fields) = value.as_object_mut()
    {
        let at = fields
            .keys()
            .position(|key| key == "id")
            .map_or(fields.len(), |at| at + 1);
        fields.shift_remove(HANDLE);
        fields.shift_insert(at.min(fields.len()), HANDLE.to_owned(), json!(handle));
        if fields.contains_key(AVAILABLE_TOOLS) {
            fields.insert(AVAILABLE_TOOLS.to_owned(), json!(catalog.methods(kind)));
        }
        has_changed = true;
    }
    match value {
        Value::Array(items) => items
            .iter_mut()
            .fold(has_changed, |any, item| write(item, kinds, handles, catalog) | any),
        Value::Object(fields) => fields
            .values_mut()
            .fold(has_changed, |any, field| write(field, kinds, handles, catalog) | any),
        _ => has_changed,
    }
}
