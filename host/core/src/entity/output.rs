//! Serialisation of the output of a Rust function, which also collects the entities in the output.

use std::cell::RefCell;
use std::sync::Arc;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::available_tools::AVAILABLE_TOOLS;
use crate::text::id_text;
use crate::{Error, ErrorKind, NativeEntity, Phase, ToolMethods, ToolProvider};

thread_local! {
    /// The entities in the output that this thread serialises, in the order of the JSON. `None` if this thread serialises no
    /// output.
    static ENTITY_SLOTS: RefCell<Option<Vec<EntitySlot>>> = const { RefCell::new(None) };
}

/// The slot of an entity in the list. The slot is reserved before the fields of the entity are serialised, and filled
/// afterwards. Therefore, an entity comes before the entities in its fields.
type EntitySlot = Option<Arc<dyn ToolProvider>>;

/// The slots of an outer serialisation on the same thread. They are restored on drop, also after a panic.
struct OuterSlots(Option<Vec<EntitySlot>>);

impl Drop for OuterSlots {
    fn drop(&mut self) {
        ENTITY_SLOTS.set(self.0.take());
    }
}

/// Serialises the output of a tool. Returns its JSON and the entities in it.
///
/// # Errors
/// [`ErrorKind::Internal`] if the output cannot be serialised as JSON.
pub(crate) fn serialize_output<T: Serialize>(output: &T) -> Result<(Value, Vec<Arc<dyn ToolProvider>>), Error> {
    let outer_slots = OuterSlots(ENTITY_SLOTS.replace(Some(Vec::new())));
    let value = serde_json::to_value(output).map_err(|error| {
        let message = format!("the output of the tool cannot be serialised as JSON: {error}");
        Error::new(ErrorKind::Internal, Phase::Execute, message).with_source(error)
    })?;
    let slots = ENTITY_SLOTS.take().unwrap_or_default();
    drop(outer_slots);
    Ok((value, slots.into_iter().flatten().collect()))
}

/// Serialises an object whose type derives `Entity`. In the output of a tool, the object becomes an entity, and its JSON contains
/// its type, its id, its fields and the names of its tools. Elsewhere, its JSON contains only its fields. The text for the type is
/// [`ToolMethods::prefix`], with which the names of the tools begin.
///
/// # Errors
/// If the fields cannot be serialised. In the output of a tool, also if the JSON of the fields is neither an object nor `null`,
/// if the schema of a method is invalid, or if a field has the name of a property that the host adds: `type`, `available_tools`,
/// or `id` with another value.
pub fn serialize_entity<T, S>(object: &T, fields: &impl Serialize, serializer: S) -> Result<S::Ok, S::Error>
where
    T: ToolMethods + Clone,
    S: Serializer,
{
    let index = ENTITY_SLOTS.with_borrow_mut(|slots| {
        let slots = slots.as_mut()?;
        slots.push(None);
        Some(slots.len() - 1)
    });
    let Some(index) = index else {
        return fields.serialize(serializer);
    };
    let fields = match serde_json::to_value(fields).map_err(S::Error::custom)? {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        _ => {
            return Err(S::Error::custom(format!(
                "the JSON of a `{}` is not an object",
                T::prefix()
            )));
        }
    };
    let id = object.instance_id().or_else(|| id_text(fields.get("id")?));
    let entity = NativeEntity::from_methods_with_id(Arc::new(object.clone()), id).map_err(S::Error::custom)?;
    let value = entity_json(&entity, fields).map_err(S::Error::custom)?;
    ENTITY_SLOTS.with_borrow_mut(|slots| {
        if let Some(slots) = slots {
            slots[index] = Some(Arc::new(entity));
        }
    });
    value.serialize(serializer)
}

/// Returns the JSON of an entity: its type (the prefix of its tool names), its id, its fields and the preferred names of its tools.
/// [`name_available_tools`](crate::name_available_tools) replaces the preferred names with those that the tool set assigned.
fn entity_json(entity: &dyn ToolProvider, fields: Map<String, Value>) -> Result<Value, String> {
    let conflict = |property: &str| {
        format!(
            "a `{0}` has a field `{property}`, but the host adds a property of this name to every entity; rename the field in \
             JSON with `#[serde(rename = \"{0}_{property}\")]`",
            entity.prefix()
        )
    };
    let mut json = Map::new();
    json.insert("type".to_owned(), json!(entity.prefix()));
    if let Some(id) = entity.instance_id() {
        json.insert("id".to_owned(), json!(id));
    }
    for (name, value) in fields {
        let is_same_id = name == "id" && id_text(&value) == entity.instance_id();
        if name == AVAILABLE_TOOLS || (json.contains_key(&name) && !is_same_id) {
            return Err(conflict(&name));
        }
        json.insert(name, value);
    }
    let tools: Vec<_> = entity
        .tools()
        .iter()
        .map(|tool| tool.definition().name().to_owned())
        .collect();
    json.insert(AVAILABLE_TOOLS.to_owned(), json!(tools));
    Ok(Value::Object(json))
}

#[cfg(test)]
mod tests;
