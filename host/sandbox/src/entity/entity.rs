//! Live resources as entities: how they are named, found again, shown to the model and given tools.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::call::plugin::Plugin;
use crate::call::session::Session;
use crate::call::session_call::EntityTarget;
use crate::call::tool::PluginTool;
use crate::inspect::inspection::{define, define_shared_method};
use crate::values::types::{Resource, ResourceIndex};
use toolwit_core::text::snake_case;
use toolwit_core::{AVAILABLE_TOOLS, Rebinding, Tool, ToolDefinition, ToolId, ToolProvider, entity_tool_names};

/// The longest id that a guest may give, in bytes.
pub(crate) const ID_BYTES_MAX: usize = 256;

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
        session.policy().may_use(id)
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
                        (definition, EntityTarget::Entity((self.resource, id.clone())))
                    }
                    None => (
                        define_shared_method(function, resource, plugin.name()),
                        EntityTarget::ByParameter(self.resource),
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
