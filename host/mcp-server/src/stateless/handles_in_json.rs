//! Handles in the JSON of results.

use serde_json::{Map, Value, json};

use super::catalog::Catalog;
use super::fixed_method::EntityKind;
use toolwit::ToolResult;
use toolwit::tool::AVAILABLE_TOOLS;

/// The property of an entity's JSON that holds its handle.
const HANDLE: &str = "handle";

/// Returns the entities in a result: the JSON objects that represent live objects of the result.
pub(super) fn entities_in(result: &ToolResult, catalog: &Catalog) -> Vec<(EntityKind, String)> {
    let mut entities = Vec::new();
    let kinds = kinds_of(result, catalog);
    if let Some(value) = result.value.as_ref().filter(|_| !kinds.is_empty()) {
        collect(value, &kinds, &mut entities);
    }
    entities
}

/// Writes handles into the entities of a result, with the names of the tools that take a handle. `handles` are in the
/// order of [`entities_in`].
pub(super) fn write_handles(result: &mut ToolResult, handles: Vec<Option<String>>, catalog: &Catalog) {
    let kinds = kinds_of(result, catalog);
    let mut handles = handles.into_iter();
    let methods = |kind: &EntityKind| json!(catalog.methods(kind));
    result.rewrite_value(|value| write(value, &kinds, &mut handles, &methods));
}

/// Returns the types of a result's live objects, each with the id of the object if it has one.
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

/// Returns the type and the id of the entity that a value represents, or `None` if the value does not represent an
/// entity.
fn entity<'k>(value: &Value, kinds: &'k [(EntityKind, Option<String>)]) -> Option<(&'k EntityKind, String)> {
    let fields = value.as_object()?;
    let (name, id) = (fields.get("type")?.as_str()?, fields.get("id")?.as_str()?);
    let is_match = |(kind, required_id): &&(EntityKind, Option<String>)| {
        kind.name == name && required_id.as_ref().is_none_or(|required_id| required_id == id)
    };
    kinds.iter().find(is_match).map(|(kind, _)| (kind, id.to_owned()))
}

/// Returns whether the server writes a field of an entity. Objects inside such a field are not entities of the result.
fn is_server_field(name: &str) -> bool {
    name == HANDLE || name == AVAILABLE_TOOLS
}

/// Collects the entities in a value.
fn collect(value: &Value, kinds: &[(EntityKind, Option<String>)], entities: &mut Vec<(EntityKind, String)>) {
    let entity = entity(value, kinds);
    let is_entity = entity.is_some();
    entities.extend(entity.map(|(kind, id)| (kind.clone(), id)));
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, kinds, entities)),
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !(is_entity && is_server_field(name)))
            .for_each(|(_, field)| collect(field, kinds, entities)),
        _ => {}
    }
}

/// Writes the handles, and visits the entities in the order of [`collect`]. Returns whether the value has changed.
fn write(
    value: &mut Value,
    kinds: &[(EntityKind, Option<String>)],
    handles: &mut impl Iterator<Item = Option<String>>,
    methods: &impl Fn(&EntityKind) -> Value,
) -> bool {
    let mut has_changed = false;
    let kind = entity(value, kinds).map(|(kind, _)| kind);
    if let (Some(kind), Some(fields)) = (kind, value.as_object_mut()) {
        // A field `handle` that the guest wrote is not a handle of the server.
        has_changed = fields.shift_remove(HANDLE).is_some();
        if let Some(handle) = handles.next().flatten() {
            write_handle(fields, handle, || methods(kind));
            has_changed = true;
        }
    }
    match value {
        Value::Array(items) => items
            .iter_mut()
            .fold(has_changed, |any, item| write(item, kinds, handles, methods) | any),
        Value::Object(fields) => fields
            .iter_mut()
            .filter(|(name, _)| !(kind.is_some() && is_server_field(name)))
            .fold(has_changed, |any, (_, field)| {
                write(field, kinds, handles, methods) | any
            }),
        _ => has_changed,
    }
}

fn write_handle(fields: &mut Map<String, Value>, handle: String, methods: impl FnOnce() -> Value) {
    let id = fields.keys().position(|key| key == "id");
    let position = id.map_or(fields.len(), |id| id + 1);
    fields.shift_insert(position, HANDLE.to_owned(), Value::String(handle));
    if fields.contains_key(AVAILABLE_TOOLS) {
        fields.insert(AVAILABLE_TOOLS.to_owned(), methods());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that each order except `x` has the handle of its own id, and returns the handles.
    fn check(value: &Value, handles: &mut Vec<String>) {
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
                fields.values().for_each(|field| check(field, handles));
            }
            Value::Object(fields) => fields.values().for_each(|field| check(field, handles)),
            Value::Array(items) => items.iter().for_each(|item| check(item, handles)),
            _ => {}
        }
    }

    #[test]
    fn entities_in_a_forged_handle_do_not_move_the_handles_of_others() {
        let order = |id: &str, more: Value| {
            let mut order = json!({"type": "order", "id": id});
            more.as_object()
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
        collect(&value, &kinds, &mut found);
        let handle_of = |(_, id): (EntityKind, String)| (id != "x").then(|| format!("h-{id}"));
        let mut handles = found.into_iter().map(handle_of);
        assert!(write(&mut value, &kinds, &mut handles, &|_| json!(["order_pay"])));
        assert_eq!(handles.next(), None, "all are used");
        // The server did not replace the `available_tools` of `x`, which has no handle.
        value["others"][0][AVAILABLE_TOOLS] = json!([]);
        let mut written = Vec::new();
        check(&value, &mut written);
        assert_eq!(written, ["h-a", "h-c", "h-d", "h-e", "h-f"]);
        assert_eq!(value["first"][AVAILABLE_TOOLS], json!(["order_pay"]));
    }
}
