//! Objects without an id, under the number by which a conversation refers to them.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::discovered_entity::DiscoveredEntity;
use super::entities::Entities;
use toolwit_core::{AVAILABLE_TOOLS, Rebinding, Tool, ToolExt, ToolProvider, ToolResult, entity_tool_names};

/// The namespace of Rust objects. A provider of a plugin without an id represents all objects of its type.
const NATIVE_NAMESPACE: &str = "native";

/// An object without an id, with a number as its id.
struct NumberedObject {
    object: Arc<dyn ToolProvider>,
    number: String,
}

impl ToolProvider for NumberedObject {
    fn prefix(&self) -> &str {
        self.object.prefix()
    }

    fn instance_id(&self) -> Option<String> {
        Some(self.number.clone())
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let with_number = |method: Arc<dyn Tool>| {
            let unbound = method.definition().id.unbound();
            let name = unbound
                .as_str()
                .rsplit(['.', '#'])
                .next()
                .unwrap_or_default()
                .to_owned();
            let names = entity_tool_names(self.prefix(), &self.number, &name);
            Arc::new(method.with_identity(unbound.bound_to(&self.number), names)) as Arc<dyn Tool>
        };
        self.object.tools().into_iter().map(with_number).collect()
    }

    fn rebinding(&self) -> Rebinding {
        self.object.rebinding()
    }

    fn namespace(&self) -> &str {
        self.object.namespace()
    }

    fn object(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.object.object()
    }

    fn version(&self) -> &str {
        self.object.version()
    }
}

/// Gives each Rust object without an id in a result a number, which is its id from then on: objects of plugins without an id
/// have one too. The objects of such a type share one set of tools, which take the number. `call_count` is the number of
/// completed calls of the conversation. It keeps the numbers unique after a resume, which does not restore objects. The objects
/// for which `is_claimed` returns `true` get no number, because a strategy refers to them in another way.
pub fn number_objects(
    result: &mut ToolResult,
    entities: &mut Entities,
    call_count: usize,
    is_claimed: impl Fn(&dyn ToolProvider) -> bool,
) {
    let has_no_id = |provider: &Arc<dyn ToolProvider>| {
        provider.namespace() == NATIVE_NAMESPACE && provider.instance_id().is_none() && !is_claimed(provider.as_ref())
    };
    if !result.providers.iter().any(has_no_id) {
        return;
    }
    let first = entities.next_number(call_count);
    let mut count = 0;
    for provider in result.providers.iter_mut().filter(|provider| has_no_id(provider)) {
        count += 1;
        let number = match count {
            1 => first.to_string(),
            further => format!("{first}-{further}"),
        };
        entities.record_numbered_type(provider.as_ref());
        *provider = Arc::new(NumberedObject {
            object: provider.clone(),
            number,
        });
    }
}

/// Writes the numbers of objects as their ids into the JSON of a result: into each object that lists tools, has the type and has no
/// id. A line after the text has the number of each object for which there is no JSON.
pub(super) fn write_numbers(result: &mut ToolResult, discovered: &[DiscoveredEntity], entities: &Entities) {
    let is_numbered = |provider: &&Arc<dyn ToolProvider>| {
        let is_discovered = |entity: &DiscoveredEntity| {
            (entity.namespace.as_str(), entity.prefix.as_str()) == (provider.namespace(), provider.prefix())
        };
        entities.is_of_numbered_type(provider.as_ref()) && discovered.iter().any(is_discovered)
    };
    let numbered = result.providers.iter().filter(is_numbered);
    let mut open: VecDeque<(String, String)> = numbered
        .filter_map(|provider| Some((provider.prefix().to_owned(), provider.instance_id()?)))
        .collect();
    if open.is_empty() {
        return;
    }
    result.rewrite_value(|value| write_into(value, &mut open));
    for (prefix, number) in open {
        result
            .for_llm
            .push_str(&format!("\n[the `{prefix}` of this result has the id {number}]"));
    }
}

/// Writes the numbers into the objects of a value, outer objects first. Returns whether the value changed.
fn write_into(value: &mut Value, open: &mut VecDeque<(String, String)>) -> bool {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |is_changed, item| write_into(item, open) | is_changed),
        Value::Object(fields) => {
            let is_changed = write_id(fields, open);
            let inner = fields.values_mut();
            inner.fold(is_changed, |is_changed, field| write_into(field, open) | is_changed)
        }
        _ => false,
    }
}

/// Takes the first number of an object's type and writes it as the object's id. Returns `false` if the object lists no tools, has
/// an id, or no number is left.
fn write_id(fields: &mut Map<String, Value>, open: &mut VecDeque<(String, String)>) -> bool {
    let Some(kind) = fields.get("type").and_then(Value::as_str) else {
        return false;
    };
    let has_place = fields.contains_key(AVAILABLE_TOOLS) && !fields.contains_key("id");
    let position = open.iter().position(|(prefix, _)| has_place && prefix == kind);
    let Some((_, number)) = position.and_then(|position| open.remove(position)) else {
        return false;
    };
    fields.shift_insert(1, "id".to_owned(), json!(number));
    true
}
