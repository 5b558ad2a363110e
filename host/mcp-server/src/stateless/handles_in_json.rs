//! Writes handles into the JSON of results.

use serde_json::{Map, Value, json};

use super::catalog::Catalog;
use super::handle_method::EntityKind;
use crate::wire::HANDLE_PROPERTY as HANDLE;
use toolwit::ToolResult;
use toolwit::tool::AVAILABLE_TOOLS;

/// Returns the types and ids of the entities in a result: the JSON objects that represent live entities of the result.
pub(super) fn entities_in(result: &ToolResult, catalog: &Catalog) -> Vec<(EntityKind, String)> {
    let mut entities = Vec::new();
    let kinds = kinds_of(result, catalog);
    if let Some(value) = result.value.as_ref().filter(|_| !kinds.is_empty()) {
        collect_entities(value, &kinds, &mut entities);
    }
    entities
}

/// The names of the tools of an entity in a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ListedTools {
    /// The names of the tools that are bound to the entity in its session.
    OfSession,
    /// The names of the tools that take its handle.
    OfHandle,
}

/// Writes handles into the entities of a result, and the names of their tools if the entities list tools. `handles` are in
/// the order of [`entities_in`].
pub(super) fn write_handles(
    result: &mut ToolResult,
    handles: Vec<Option<String>>,
    catalog: &Catalog,
    listed_tools: ListedTools,
) {
    let kinds = kinds_of(result, catalog);
    let mut handles = handles.into_iter();
    let method_names =
        |kind: &EntityKind| (listed_tools == ListedTools::OfHandle).then(|| json!(catalog.methods(kind)));
    result.rewrite_value(|value| write_in_value(value, &kinds, &mut handles, &method_names));
}

/// Returns the types of a result's live entities, each with the id of the entity if it has one.
fn kinds_of(result: &ToolResult, catalog: &Catalog) -> Vec<(EntityKind, Option<String>)> {
    let kind = |provider: &std::sync::Arc<dyn toolwit::tool::ToolProvider>| {
        let kind = EntityKind {
            plugin: provider.namespace().split('/').next().unwrap_or_default().to_owned(),
            name: provider.prefix().to_owned(),
        };
        catalog.methods(&kind)?;
        Some((kind, provider.instance_id()))
    };
    result.providers.iter().filter_map(kind).collect()
}

/// Returns the type and the id of the entity that a value represents, or `None` if the value does not represent an
/// entity.
fn entity_of<'k>(value: &Value, kinds: &'k [(EntityKind, Option<String>)]) -> Option<(&'k EntityKind, String)> {
    let fields = value.as_object()?;
    let (name, id) = (fields.get("type")?.as_str()?, fields.get("id")?.as_str()?);
    let is_match = |(kind, required_id): &&(EntityKind, Option<String>)| {
        kind.name == name && required_id.as_ref().is_none_or(|required_id| required_id == id)
    };
    kinds.iter().find(is_match).map(|(kind, _)| (kind, id.to_owned()))
}

/// Returns whether the server writes the field with this name into entities. Objects inside such a field are not entities
/// of the result.
fn is_server_field(name: &str) -> bool {
    name == HANDLE || name == AVAILABLE_TOOLS
}

/// Collects the entities in a value.
fn collect_entities(value: &Value, kinds: &[(EntityKind, Option<String>)], entities: &mut Vec<(EntityKind, String)>) {
    let entity = entity_of(value, kinds);
    let is_entity = entity.is_some();
    entities.extend(entity.map(|(kind, id)| (kind.clone(), id)));
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_entities(item, kinds, entities)),
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !(is_entity && is_server_field(name)))
            .for_each(|(_, field)| collect_entities(field, kinds, entities)),
        _ => {}
    }
}

/// Writes handles into the entities in a value, in the order of [`collect_entities`]. Returns whether the value has
/// changed.
fn write_in_value(
    value: &mut Value,
    kinds: &[(EntityKind, Option<String>)],
    handles: &mut impl Iterator<Item = Option<String>>,
    method_names: &impl Fn(&EntityKind) -> Option<Value>,
) -> bool {
    let mut has_changed = false;
    let kind = entity_of(value, kinds).map(|(kind, _)| kind);
    if let (Some(kind), Some(fields)) = (kind, value.as_object_mut()) {
        // The guest may have written a field `handle`, which is not a handle of the server.
        has_changed = fields.shift_remove(HANDLE).is_some();
        if let Some(handle) = handles.next().flatten() {
            write_handle(fields, handle, || method_names(kind));
            has_changed = true;
        }
    }
    match value {
        Value::Array(items) => items.iter_mut().fold(has_changed, |has_changed, item| {
            write_in_value(item, kinds, handles, method_names) | has_changed
        }),
        Value::Object(fields) => fields
            .iter_mut()
            .filter(|(name, _)| !(kind.is_some() && is_server_field(name)))
            .fold(has_changed, |has_changed, (_, field)| {
                write_in_value(field, kinds, handles, method_names) | has_changed
            }),
        _ => has_changed,
    }
}

/// Writes a handle into the fields of an entity, after the id.
fn write_handle(fields: &mut Map<String, Value>, handle: String, method_names: impl FnOnce() -> Option<Value>) {
    let id_position = fields.keys().position(|key| key == "id");
    let position = id_position.map_or(fields.len(), |id_position| id_position + 1);
    fields.shift_insert(position, HANDLE.to_owned(), Value::String(handle));
    if fields.contains_key(AVAILABLE_TOOLS)
        && let Some(names) = method_names()
    {
        fields.insert(AVAILABLE_TOOLS.to_owned(), names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that each order except `x` has the handle of its own id, and collects the handles.
    fn assert_own_handles(value: &Value, handles: &mut Vec<String>) {
        match value {
            Value::Object(fields) if fields.contains_key("id") => {
                let id = fields["id"].as_str().unwrap_or_default();
                let handle = fields.get(HANDLE).and_then(Value::as_str);
                assert_eq!(
                    handle,
                    (!id.contains('x')).then(|| format!("h-{id}")).as_deref(),
                    "{value}"
                );
                handles.extend(handle.map(str::to_owned));
                fields.values().for_each(|field| assert_own_handles(field, handles));
            }
            Value::Object(fields) => fields.values().for_each(|field| assert_own_handles(field, handles)),
            Value::Array(items) => items.iter().for_each(|item| assert_own_handles(item, handles)),
            _ => {}
        }
    }

    #[test]
    fn entities_in_a_forged_handle_do_not_shift_the_handles_of_other_entities() {
        let order = |id: &str, more_fields: Value| {
            let mut order = json!({"type": "order", "id": id});
            more_fields
                .as_object()
                .cloned()
                .into_iter()
                .flatten()
                .for_each(|(name, field)| order[name] = field);
            order
        };
        let inner = || order("inner", Value::Null);
        let mut value = json!({
            "first": order("a", json!({"handle": inner(), "available_tools": [inner()]})),
            "others": [
                // The order `x` gets no handle.
                order("x", json!({"handle": [inner()], "available_tools": [inner()], "part": order("c", Value::Null)})),
                order("d", json!({"part": order("e", json!({"handle": "h-a"}))})),
            ],
            "handle": order("f", Value::Null),
        });
        let kind = EntityKind {
            plugin: "shop".to_owned(),
            name: "order".to_owned(),
        };
        let kinds = [(kind, None)];
        let mut found = Vec::new();
        collect_entities(&value, &kinds, &mut found);
        let handle_of = |(_, id): (EntityKind, String)| (id != "x").then(|| format!("h-{id}"));
        let mut handles = found.into_iter().map(handle_of);
        let method_names = |_: &EntityKind| Some(json!(["order_pay"]));
        assert!(write_in_value(&mut value, &kinds, &mut handles, &method_names));
        assert_eq!(handles.next(), None, "all handles are used");
        // The server did not replace the `available_tools` of `x`, which has no handle.
        value["others"][0][AVAILABLE_TOOLS] = json!([]);
        let mut written = Vec::new();
        assert_own_handles(&value, &mut written);
        assert_eq!(written, ["h-a", "h-c", "h-d", "h-e", "h-f"]);
        assert_eq!(value["first"][AVAILABLE_TOOLS], json!(["order_pay"]));
    }
}
