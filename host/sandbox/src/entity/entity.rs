//! Live resources as entities: how they are named, found again, shown to the model and given tools.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use wasmtime::component::ResourceAny;

use crate::call::session::{Session, Target};
use crate::call::tool::PluginTool;
use crate::inspect::inspection::{define, define_shared_method};
use crate::plugin::Plugin;
use crate::values::decode::{DecodeError, Handover, ResolveHandle, quoted};
use crate::values::types::{Function, FunctionKind, Resource, ResourceIndex, Shape, WitType};
use toolwit_core::text::snake_case;
use toolwit_core::{AVAILABLE_TOOLS, Rebinding, Tool, ToolDefinition, ToolId, ToolProvider, entity_tool_names};

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

/// How many entities that are gone a session can tell about.
const GONE_MAX: usize = 4_096;

/// The live resources of one session, by the ids that the model uses, and what became of the others.
#[derive(Debug, Default)]
pub(crate) struct EntityTable {
    live: HashMap<EntityKey, LiveEntity>,
    gone: HashMap<EntityKey, Arc<str>>,
    last_number: HashMap<ResourceIndex, u64>,
}

impl EntityTable {
    pub(crate) fn get(&self, key: &EntityKey) -> Option<LiveEntity> {
        self.live.get(key).copied()
    }

    pub(crate) fn insert(&mut self, key: EntityKey, entity: LiveEntity) -> Option<LiveEntity> {
        self.gone.remove(&key);
        self.live.insert(key, entity)
    }

    /// Forgets an entity, but not why it is gone.
    pub(crate) fn remove(&mut self, key: &EntityKey, why: &Arc<str>) {
        if self.live.remove(key).is_some() {
            self.note_gone(key.clone(), why);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Forgets every entity, and keeps counting where it was, so that no number ever means two entities.
    pub(crate) fn clear(&mut self, why: &Arc<str>) {
        for (key, _) in std::mem::take(&mut self.live) {
            self.note_gone(key, why);
        }
    }

    /// Tells why an entity that once lived does so no more.
    pub(crate) fn why_gone(&self, key: &EntityKey) -> Option<&str> {
        self.gone.get(key).map(|why| &**why)
    }

    fn note_gone(&mut self, key: EntityKey, why: &Arc<str>) {
        if self.gone.len() < GONE_MAX {
            self.gone.insert(key, why.clone());
        }
    }

    /// Gives the next number to a resource without an id of its own.
    pub(crate) fn next_number(&mut self, resource: ResourceIndex) -> String {
        let number = self.last_number.entry(resource).or_default();
        *number += 1;
        number.to_string()
    }
}

/// Resolves the ids in a call's arguments, and notes which entities the call takes for itself and which it borrows.
pub(crate) struct Handles<'a> {
    pub(crate) entities: &'a EntityTable,
    pub(crate) shape: &'a Shape,
    pub(crate) given: Vec<EntityKey>,
    pub(crate) lent: Vec<EntityKey>,
}

impl ResolveHandle for Handles<'_> {
    fn resolve(&mut self, resource: ResourceIndex, id: &str, handover: Handover) -> Result<ResourceAny, DecodeError> {
        let key = (resource, id.to_owned());
        let Some(entity) = self.entities.get(&key) else {
            return Err(DecodeError::new(self.entities.not_there(self.shape, &key)));
        };
        let is_lent_and_given = match handover {
            Handover::Give => self.given.contains(&key) || self.lent.contains(&key),
            Handover::Lend => self.given.contains(&key),
        };
        if is_lent_and_given {
            return Err(DecodeError::new(format!(
                "the entity `{id}` is named by another argument too, and one of them takes it away"
            )));
        }
        match handover {
            Handover::Give => self.given.push(key),
            Handover::Lend => self.lent.push(key),
        }
        Ok(entity.handle)
    }
}

impl EntityTable {
    /// Says that an id stands for nothing, why, and what can be done about it.
    pub(crate) fn not_there(&self, shape: &Shape, key: &EntityKey) -> String {
        let (resource, id) = key;
        let name = shape.resources[resource.0].json_name();
        let hint = shape.how_to_get(*resource);
        match self.why_gone(key) {
            Some(why) => format!("the `{name}` with the id `{id}` is gone: {why}; {hint}"),
            None => format!("there is no `{name}` with the id {}; {hint}", quoted(id)),
        }
    }
}

impl Shape {
    /// Says which tools give entities of a type.
    pub(crate) fn how_to_get(&self, resource: ResourceIndex) -> String {
        const NAMES_MAX: usize = 4;
        let gives = |ty: &WitType| {
            let mut gives = false;
            ty.visit_resources(&mut |found| gives |= found == resource);
            gives
        };
        let names: Vec<_> = self
            .functions
            .iter()
            .filter(|function| function.outcome().0.is_some_and(gives))
            .map(|function| self.tool_in_words(function))
            .take(NAMES_MAX)
            .collect();
        if names.is_empty() {
            "no tool gives one".to_owned()
        } else {
            format!("get one with {}", names.join(" or "))
        }
    }

    /// Names a tool as the model knows it; a method, whose name depends on the entity, by its last part.
    fn tool_in_words(&self, function: &Function) -> String {
        let name = snake_case(&function.name);
        match function.kind {
            FunctionKind::Constructor(index) | FunctionKind::Static(index) => {
                format!("`{}_{name}`", self.resources[index.0].json_name())
            }
            FunctionKind::Method(index) => format!("`{name}` of a `{}`", self.resources[index.0].json_name()),
            FunctionKind::Free | FunctionKind::Command | FunctionKind::Dynamic => format!("`{name}`"),
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
            // Which tools there are is the host's to say.
            for (name, value) in described.into_iter().filter(|(name, _)| name != AVAILABLE_TOOLS) {
                fields.entry(name).or_insert(value);
            }
        }
        Some(value) => {
            fields.insert("description".to_owned(), value);
        }
        None => {}
    }
    if !tools.is_empty() {
        fields.insert(AVAILABLE_TOOLS.to_owned(), json!(tools));
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

/// Lists the methods that the conversation may use as tools.
fn usable_methods(session: &Session, resource: &Resource) -> impl Iterator<Item = usize> {
    let plugin = session.plugin();
    tool_methods(resource).filter(move |method| {
        let function = &plugin.inspection().shape.functions[*method];
        let id = || ToolId::plugin(plugin.name(), function.interface.as_deref(), &function.export);
        session.confines().may_use(id)
    })
}

/// Names the tools of an entity as they will be called unless the names are taken; whoever takes them in writes the names
/// that they were given.
pub(crate) fn bound_tool_names(session: &Session, resource: &Resource, id: &str) -> Vec<String> {
    let shape = &session.plugin().inspection().shape;
    usable_methods(session, resource)
        .filter_map(|method| {
            entity_tool_names(&resource.json_name(), id, &snake_case(&shape.functions[method].name))
                .into_iter()
                .next()
        })
        .collect()
}

/// Names the tools that serve all entities of a type.
pub(crate) fn shared_tool_names(session: &Session, resource: &Resource) -> Vec<String> {
    let shape = &session.plugin().inspection().shape;
    usable_methods(session, resource)
        .map(|method| format!("{}_{}", resource.json_name(), snake_case(&shape.functions[method].name)))
        .collect()
}

/// A resource whose methods are declared before there is an instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChainedResource {
    /// The namespace of its entities.
    pub namespace: String,
    /// Its name in tool names.
    pub prefix: String,
    /// Its methods, bound to no instance.
    pub methods: Vec<ToolDefinition>,
}

impl Plugin {
    /// Lists the resources that the package wants chained.
    #[must_use]
    pub fn chained_resources(&self) -> Vec<ChainedResource> {
        let shape = &self.inspection().shape;
        let chained = shape.resources.iter().filter(|resource| resource.chained);
        chained
            .map(|resource| ChainedResource {
                namespace: namespace(self, resource),
                prefix: resource.json_name(),
                methods: tool_methods(resource)
                    .map(|method| define(shape, &shape.functions[method], self.name()))
                    .collect(),
            })
            .collect()
    }
}

/// Tells a plugin's types from those of all others.
fn namespace(plugin: &Plugin, resource: &Resource) -> String {
    let interface = resource.interface.as_deref().unwrap_or_default();
    format!("{}@{}/{interface}", plugin.name(), plugin.inspection().digest)
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
        let namespace = namespace(session.plugin(), resource);
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
        usable_methods(&self.session, resource)
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

    fn rebinding(&self) -> Rebinding {
        self.session.plugin().inspection().shape.resources[self.resource.0].rebinding
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn depth(&self) -> u32 {
        self.depth
    }
}
