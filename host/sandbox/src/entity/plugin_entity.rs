//! An entity as a provider of tools, and its JSON for the model.

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

/// The field with the description of the resource on which the tools of an entity act, if that is not the returned
/// resource.
const BOUND_INSTANCE_FIELD: &str = "tools_act_on";

/// The fields that only the host writes.
const HOST_FIELDS: [&str; 4] = ["type", "id", AVAILABLE_TOOLS, BOUND_INSTANCE_FIELD];

/// The values that the method `describe` returned for an entity.
pub(crate) struct Descriptions {
    /// The description of the resource that the call returned.
    pub(crate) returned: Option<Value>,
    /// The description of an earlier resource, if the tools stay bound to that resource.
    pub(crate) earlier: Option<Value>,
}

/// Returns the JSON of an entity for the model: its type, id, description and tools. If the tools stay bound to an
/// earlier resource with another description, adds that description, so that the model sees on which data the tools
/// act.
pub(crate) fn entity_json(resource: &Resource, id: &str, descriptions: Descriptions, tools: &[String]) -> Value {
    let Descriptions { returned, earlier } = descriptions;
    let mut fields = Map::new();
    fields.insert("type".to_owned(), json!(resource.json_name()));
    fields.insert("id".to_owned(), json!(id));
    let bound_description = earlier.filter(|earlier| Some(earlier) != returned.as_ref());
    match returned {
        Some(Value::Object(described)) => {
            fields.extend(without_host_fields(described));
        }
        Some(value) => {
            fields.insert("description".to_owned(), value);
        }
        None => {}
    }
    if let Some(description) = bound_description {
        let description = match description {
            Value::Object(described) => Value::Object(without_host_fields(described)),
            other => other,
        };
        fields.insert(BOUND_INSTANCE_FIELD.to_owned(), description);
    }
    if !tools.is_empty() {
        fields.insert(AVAILABLE_TOOLS.to_owned(), json!(tools));
    }
    Value::Object(fields)
}

/// Removes the fields of a description that only the host writes, so that a guest cannot imitate them.
fn without_host_fields(mut described: Map<String, Value>) -> Map<String, Value> {
    described.retain(|name, _| !HOST_FIELDS.contains(&name.as_str()));
    described
}

/// Returns the JSON of a resource that cannot become an entity.
pub(crate) fn rejected_json(resource: &Resource, reason: &str) -> Value {
    json!({"type": resource.json_name(), "error": reason})
}

/// Returns the function indexes of the methods that become tools: all except the method that returns the id.
fn tool_methods(resource: &Resource) -> impl Iterator<Item = usize> {
    resource
        .methods
        .iter()
        .copied()
        .filter(|method| resource.id_method != Some(*method))
}

/// Returns the function indexes of the methods that the conversation may use as tools.
fn usable_methods(session: &Session, resource: &Resource) -> impl Iterator<Item = usize> {
    let plugin = session.plugin();
    tool_methods(resource).filter(move |method| {
        let function = &plugin.inspection().shape.functions[*method];
        let id = || ToolId::plugin(plugin.name(), function.interface.as_deref(), &function.export);
        session.policy().may_use(id)
    })
}

/// Returns the preferred names of an entity's own tools. If the tool set assigns other names,
/// [`name_available_tools`](toolwit_core::name_available_tools) corrects the JSON of the entity.
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

/// Returns the preferred names of the tools that all entities of a type share.
pub(crate) fn shared_tool_names(session: &Session, resource: &Resource) -> Vec<String> {
    let shape = &session.plugin().inspection().shape;
    usable_methods(session, resource)
        .map(|method| format!("{}_{}", resource.json_name(), snake_case(&shape.functions[method].name)))
        .collect()
}

/// A resource whose methods are offered as tools before an instance exists.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChainedResource {
    /// The namespace of the entities.
    pub namespace: String,
    /// The name of the resource in tool names.
    pub prefix: String,
    /// The definitions of its methods, not bound to an instance.
    pub methods: Vec<ToolDefinition>,
}

impl Plugin {
    /// Returns the resources that the package declares as chained; see [`ChainedResource`].
    #[must_use]
    pub fn chained_resources(&self) -> Vec<ChainedResource> {
        let shape = &self.inspection().shape;
        let chained = shape.resources.iter().filter(|resource| resource.is_chained);
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

/// Returns the namespace of a resource's entities: plugin name and interface, without its version.
fn namespace(plugin: &Plugin, resource: &Resource) -> String {
    let interface = resource.interface.as_deref().unwrap_or_default();
    let interface = interface.split('@').next().unwrap_or_default();
    format!("{}/{interface}", plugin.name())
}

/// A provider of tools for one entity, or for all entities of a type.
pub(crate) struct EntityToolProvider {
    session: Arc<Session>,
    resource: ResourceIndex,
    /// The id of the entity; `None` for the provider that all entities of the type share.
    id: Option<String>,
    prefix: String,
    namespace: String,
}

impl EntityToolProvider {
    pub(crate) fn new(session: Arc<Session>, index: ResourceIndex, id: Option<String>) -> Self {
        let inspection = session.plugin().inspection();
        let resource = &inspection.shape.resources[index.0];
        let namespace = namespace(session.plugin(), resource);
        Self {
            prefix: resource.json_name(),
            namespace,
            session: session.clone(),
            resource: index,
            id,
        }
    }
}

impl ToolProvider for EntityToolProvider {
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
                PluginTool::of_method(self.session.clone(), method, target, definition) as Arc<dyn Tool>
            })
            .collect()
    }

    fn rebinding(&self) -> Rebinding {
        self.session.plugin().inspection().shape.resources[self.resource.0].rebinding
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the number of the session, which differs for each version of the plugin, also if only its manifest changed.
    fn version(&self) -> &str {
        self.session.version()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cart() -> Resource {
        Resource {
            interface: None,
            name: "cart".to_owned(),
            docs: None,
            methods: Vec::new(),
            rebinding: Rebinding::default(),
            is_chained: false,
            id_method: None,
            describe_method: None,
        }
    }

    #[test]
    fn the_description_of_a_guest_does_not_replace_the_fields_of_the_host() {
        let imitation = json!({
            "items": 1, "type": "account", "id": "c-2", "available_tools": ["delete"], "tools_act_on": {"items": 9},
        });
        let descriptions = |earlier| Descriptions {
            returned: Some(imitation.clone()),
            earlier,
        };
        let without_earlier = entity_json(&cart(), "c-1", descriptions(None), &[]);
        assert_eq!(without_earlier, json!({"type": "cart", "id": "c-1", "items": 1}));

        let earlier = json!({"items": 2, "tools_act_on": {"items": 9}});
        let with_earlier = entity_json(&cart(), "c-1", descriptions(Some(earlier)), &["count".to_owned()]);
        assert_eq!(
            with_earlier,
            json!({"type": "cart", "id": "c-1", "items": 1, "tools_act_on": {"items": 2}, "available_tools": ["count"]})
        );
    }
}
