//! Live resources as entities: how they are named, found again, shown to the model and given tools.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use wasmtime::component::ResourceAny;

use super::decode::{DecodeError, Handover, ResolveHandle};
use super::inspection::{define, define_shared_method};
use super::session::{Session, Target};
use super::tool::PluginTool;
use super::types::{Resource, ResourceIndex, Shape};
use crate::tool::{Tool, ToolProvider, entity_tool_names, snake_case};

/// The longest id that a guest may give, in bytes.
pub(crate) const ID_BYTES_MAX: usize = 256;

/// What identifies an entity within its session.
pub(crate) type EntityKey = (ResourceIndex, String);

/// A resource that is alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveEntity {
    pub(crate) handle: ResourceAny,
    /// How many entities lie between it and a tool that was there from the start.
    pub(crate) depth: u32,
}

/// The live resources of one session, by the ids that the model uses.
#[derive(Debug, Default)]
pub(crate) struct EntityTable {
    live: HashMap<EntityKey, LiveEntity>,
    last_number: HashMap<ResourceIndex, u64>,
}

impl EntityTable {
    pub(crate) fn get(&self, key: &EntityKey) -> Option<LiveEntity> {
        self.live.get(key).copied()
    }

    pub(crate) fn insert(&mut self, key: EntityKey, entity: LiveEntity) -> Option<LiveEntity> {
        self.live.insert(key, entity)
    }

    pub(crate) fn remove(&mut self, key: &EntityKey) {
        self.live.remove(key);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Forgets every entity, and keeps counting where it was, so that no number ever means two entities.
    pub(crate) fn clear(&mut self) {
        self.live.clear();
    }

    /// Gives the next number to a resource without an id of its own.
    pub(crate) fn next_number(&mut self, resource: ResourceIndex) -> String {
        let number = self.last_number.entry(resource).or_default();
        *number += 1;
        number.to_string()
    }
}

/// Resolves the ids in a call's arguments, and notes which entities the call takes for itself.
pub(crate) struct Handles<'a> {
    pub(crate) entities: &'a EntityTable,
    pub(crate) shape: &'a Shape,
    pub(crate) given: Vec<EntityKey>,
}

impl ResolveHandle for Handles<'_> {
    fn resolve(&mut self, resource: ResourceIndex, id: &str, handover: Handover) -> Result<ResourceAny, DecodeError> {
        let key = (resource, id.to_owned());
        if self.given.contains(&key) {
            return Err(DecodeError::new(format!(
                "the entity `{id}` is already given away by another argument"
            )));
        }
        let Some(entity) = self.entities.get(&key) else {
            let name = self.shape.resources[resource.0].json_name();
            let shown: String = id.chars().take(ID_BYTES_MAX).collect();
            return Err(DecodeError::new(format!(
                "there is no live `{name}` with the id `{shown}`; {}",
                self.shape.how_to_get(resource)
            )));
        };
        if handover == Handover::Give {
            self.given.push(key);
        }
        Ok(entity.handle)
    }
}

impl Shape {
    /// Says which tools give entities of a type.
    pub(crate) fn how_to_get(&self, resource: ResourceIndex) -> String {
        const NAMES_MAX: usize = 4;
        let gives = |ty: &super::types::WitType| {
            let mut gives = false;
            ty.visit_resources(&mut |found| gives |= found == resource);
            gives
        };
        let names: Vec<_> = self
            .functions
            .iter()
            .filter(|function| function.result.as_ref().is_some_and(gives))
            .map(|function| match function.kind {
                super::types::FunctionKind::Constructor(index)
                | super::types::FunctionKind::Static(index)
                | super::types::FunctionKind::Method(index) => {
                    format!(
                        "`{}_{}`",
                        self.resources[index.0].json_name(),
                        snake_case(&function.name)
                    )
                }
                _ => format!("`{}`", snake_case(&function.name)),
            })
            .take(NAMES_MAX)
            .collect();
        if names.is_empty() {
            "nothing gives one".to_owned()
        } else {
            format!("get one with {}", names.join(" or "))
        }
    }
}

/// Writes what the model reads about an entity: its type, id, what it says of itself, and its tools.
pub(crate) fn entity_json(resource: &Resource, id: &str, description: Option<Value>, tools: &[String]) -> Value {
    let mut fields = Map::new();
    fields.insert("type".to_owned(), json!(resource.json_name()));
    fields.insert("id".to_owned(), json!(id));
    match description {
        Some(Value::Object(described)) => {
            for (name, value) in described {
                fields.entry(name).or_insert(value);
            }
        }
        Some(value) => {
            fields.insert("description".to_owned(), value);
        }
        None => {}
    }
    if !tools.is_empty() {
        fields.insert("available_tools".to_owned(), json!(tools));
    }
    Value::Object(fields)
}

/// Writes what stands for a resource that cannot become an entity.
pub(crate) fn invalid_json(resource: &Resource, reason: &str) -> Value {
    json!({"type": resource.json_name(), "error": reason})
}

/// Lists the methods that become tools: all but the one that only names the entity.
fn tool_methods(resource: &Resource) -> impl Iterator<Item = usize> {
    resource
        .methods
        .iter()
        .copied()
        .filter(|method| resource.id != Some(*method))
}

/// Names the tools of an entity as they will be called unless the names are taken.
pub(crate) fn bound_tool_names(shape: &Shape, resource: &Resource, id: &str) -> Vec<String> {
    tool_methods(resource)
        .filter_map(|method| {
            entity_tool_names(&resource.json_name(), id, &snake_case(&shape.functions[method].name))
                .into_iter()
                .next()
        })
        .collect()
}

/// Names the tools that serve all entities of a type.
pub(crate) fn shared_tool_names(shape: &Shape, resource: &Resource) -> Vec<String> {
    tool_methods(resource)
        .map(|method| format!("{}_{}", resource.json_name(), snake_case(&shape.functions[method].name)))
        .collect()
}

/// An entity, or all entities of a type, as a provider of tools.
pub(crate) struct PluginEntity {
    session: Arc<Session>,
    resource: ResourceIndex,
    /// `None` for the form that serves every entity of the type.
    id: Option<String>,
    depth: u32,
    prefix: String,
    namespace: String,
}

impl PluginEntity {
    pub(crate) fn new(session: Arc<Session>, index: ResourceIndex, id: Option<String>, depth: u32) -> Self {
        let inspection = session.plugin().inspection();
        let resource = &inspection.shape.resources[index.0];
        let interface = resource.interface.as_deref().unwrap_or_default();
        let namespace = format!("{}@{}/{interface}", session.plugin().name(), inspection.digest);
        Self {
            prefix: resource.json_name(),
            namespace,
            session: session.clone(),
            resource: index,
            id,
            depth,
        }
    }
}

impl ToolProvider for PluginEntity {
    fn prefix(&self) -> &str {
        &self.prefix
    }

    fn instance_id(&self) -> Option<String> {
        self.id.clone()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let plugin = self.session.plugin();
        let shape = &plugin.inspection().shape;
        let resource = &shape.resources[self.resource.0];
        tool_methods(resource)
            .map(|method| {
                let function = &shape.functions[method];
                let (definition, target) = match &self.id {
                    Some(id) => {
                        let mut definition = define(shape, function, plugin.name());
                        definition.id = definition.id.bound_to(id);
                        definition.names = entity_tool_names(&self.prefix, id, &snake_case(&function.name));
                        (definition, Target::Entity((self.resource, id.clone())))
                    }
                    None => (
                        define_shared_method(function, resource, plugin.name()),
                        Target::ByParameter(self.resource),
                    ),
                };
                PluginTool::method(self.session.clone(), method, target, definition) as Arc<dyn Tool>
            })
            .collect()
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn depth(&self) -> u32 {
        self.depth
    }
}
