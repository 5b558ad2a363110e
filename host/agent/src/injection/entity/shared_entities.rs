//! One set of tools for many entities of a type.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::discovered_entity::EntityIdentity;
use super::entities::Entities;
use super::method_name::method_tool_name;
use toolwit_core::{
    Arguments, CallAccess, Decorator, Rebinding, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolProvider,
    ToolResult, ToolSet, decorator_chain, new_serial_group,
};

/// The entities of one type that share one set of tools, by id.
///
/// The conversation's [`Entities`](super::Entities) own the group; clones refer to the same group. The tools of the
/// group look up entities in the group when they are called, so a later result can add members without replacing the
/// tools. A strategy never changes the group: a [`SharedDiscovery`] names the members to add, and
/// [`Entities::record`](super::Entities::record) adds them.
#[derive(Clone)]
pub struct SharedEntities {
    by_id: Arc<RwLock<HashMap<String, Arc<dyn ToolProvider>>>>,
    /// The serial group of the methods whose calls must not overlap. They run sequentially across all members.
    serial_group: u64,
}

impl Default for SharedEntities {
    fn default() -> Self {
        Self {
            by_id: Arc::default(),
            serial_group: new_serial_group(),
        }
    }
}

impl SharedEntities {
    pub(in crate::injection) fn contains(&self, id: &str) -> bool {
        self.by_id
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains_key(id)
    }

    fn add(&self, members: &[Arc<dyn ToolProvider>]) {
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        for entity in members {
            let Some(id) = entity.instance_id() else { continue };
            match entity.rebinding() {
                Rebinding::Keep => drop(by_id.entry(id).or_insert_with(|| entity.clone())),
                Rebinding::Latest => drop(by_id.insert(id, entity.clone())),
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn get(&self, id: &str) -> Option<Arc<dyn ToolProvider>> {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        by_id.get(id).cloned()
    }

    /// Returns the decorators of the tool that runs when this method of a member is called.
    fn decorators_of(&self, id: &str, method: &ToolId) -> Vec<Arc<dyn Decorator>> {
        let tools = self.get(id).map(|member| member.tools()).unwrap_or_default();
        let tool = tools.iter().find(|tool| tool.definition().id.unbound() == *method);
        let layers = tool.into_iter().flat_map(decorator_chain);
        layers.filter_map(|layer| layer.decorator()).cloned().collect()
    }

    /// Creates the tools that take an entity's id, from the methods of one member.
    pub(in crate::injection) fn tools(&self, member: &dyn ToolProvider) -> Vec<Arc<dyn Tool>> {
        let method = |tool: Arc<dyn Tool>| {
            let shared = SharedMethod::new(self.clone(), member.prefix(), &*tool);
            Arc::new(shared) as Arc<dyn Tool>
        };
        member.tools().into_iter().map(method).collect()
    }
}

impl fmt::Debug for SharedEntities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entities", self.len())
    }
}

impl PartialEq for SharedEntities {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.by_id, &other.by_id)
    }
}

impl Eq for SharedEntities {}

/// A member of a group that also has its own tools. The group calls the member through them.
pub(in crate::injection) struct MemberWithTools {
    entity: Arc<dyn ToolProvider>,
    tools: Vec<Arc<dyn Tool>>,
}

impl MemberWithTools {
    pub(in crate::injection) fn new(entity: Arc<dyn ToolProvider>, tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { entity, tools }
    }
}

impl ToolProvider for MemberWithTools {
    fn prefix(&self) -> &str {
        self.entity.prefix()
    }

    fn instance_id(&self) -> Option<String> {
        self.entity.instance_id()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }

    fn namespace(&self) -> &str {
        self.entity.namespace()
    }

    fn depth(&self) -> u32 {
        self.entity.depth()
    }
}

/// The members that a result adds to a group of entities.
#[derive(Clone)]
pub struct SharedDiscovery {
    entities: SharedEntities,
    members: Vec<Arc<dyn ToolProvider>>,
}

impl SharedDiscovery {
    pub(in crate::injection) fn new(entities: SharedEntities, members: Vec<Arc<dyn ToolProvider>>) -> Self {
        Self { entities, members }
    }

    /// Returns the guards of the members' own tools for this method that the shared method lacks. The caller adds them.
    ///
    /// A resume does not record entities again, so a tool from before a resume is looked up by its id.
    pub(crate) fn missing_guards(
        &self,
        method: &ToolId,
        entities: &Entities,
        tools: &ToolSet,
    ) -> Vec<Arc<dyn Decorator>> {
        let method = method.unbound();
        let mut missing = Vec::new();
        for member in &self.members {
            let Some(id) = member.instance_id() else { continue };
            let key = EntityIdentity::new(member.namespace(), member.prefix(), id);
            let recorded = entities.tools_of(&key).unwrap_or_default().iter();
            let own = recorded.filter(|own| own.unbound() == method).cloned();
            let mut guards: Vec<_> = own
                .chain([method.bound_to(&key.id)])
                .flat_map(|own| tools.guards(&own))
                .collect();
            if !guards.is_empty() {
                let applied = self.entities.decorators_of(&key.id, &method);
                guards.retain(|guard| !applied.iter().any(|applied| Arc::ptr_eq(applied, guard)));
            }
            missing.extend(guards);
        }
        missing
    }

    /// Adds the members to the group and returns the group.
    pub(super) fn add_members(&self) -> SharedEntities {
        self.entities.add(&self.members);
        self.entities.clone()
    }
}

impl fmt::Debug for SharedDiscovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} members for {:?}", self.members.len(), self.entities)
    }
}

impl PartialEq for SharedDiscovery {
    fn eq(&self, other: &Self) -> bool {
        self.entities == other.entities
            && self.members.len() == other.members.len()
            && self.members.iter().zip(&other.members).all(|(a, b)| Arc::ptr_eq(a, b))
    }
}

impl Eq for SharedDiscovery {}

/// Returns the id of the method that takes the id of the entity on which it acts.
pub(crate) fn shared_method_id(method: &ToolId) -> ToolId {
    method.unbound().bound_by("any")
}

/// A method that takes the id of the entity on which it acts.
struct SharedMethod {
    definition: ToolDefinition,
    entities: SharedEntities,
    prefix: String,
    parameter: String,
    /// Id of the method, not bound to an entity.
    method: ToolId,
    serial_group: Option<u64>,
}

impl SharedMethod {
    fn new(entities: SharedEntities, prefix: &str, bound: &dyn Tool) -> Self {
        let serial_group = bound.serial_group().map(|_| entities.serial_group);
        let bound = bound.definition();
        let method = bound.id.unbound();
        let mut parameter = format!("{prefix}_id");
        let mut schema = Value::clone(&bound.input_schema);
        if let Some(fields) = schema.as_object_mut() {
            let mut properties = match fields.remove("properties") {
                Some(Value::Object(properties)) => properties,
                _ => Map::new(),
            };
            while properties.contains_key(&parameter) {
                parameter.insert_str(0, "the_");
            }
            let id = json!({"type": "string", "description": format!("The id of the `{prefix}`.")});
            properties.shift_insert(0, parameter.clone(), id);
            let mut required = vec![json!(parameter)];
            if let Some(Value::Array(before)) = fields.remove("required") {
                required.extend(before);
            }
            fields.insert("properties".to_owned(), properties.into());
            fields.insert("required".to_owned(), required.into());
        }
        let mut definition = bound.clone();
        definition.id = shared_method_id(&method);
        definition.names = vec![method_tool_name(prefix, &method)];
        definition.input_schema = Arc::new(schema);
        Self {
            definition,
            entities,
            prefix: prefix.to_owned(),
            parameter,
            method,
            serial_group,
        }
    }

    /// Returns the method of the entity with this id.
    fn method_of(&self, id: &str) -> Option<Arc<dyn Tool>> {
        let mut tools = self.entities.get(id)?.tools().into_iter();
        tools.find(|tool| tool.definition().id.unbound() == self.method)
    }
}

#[async_trait]
impl Tool for SharedMethod {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn serial_group(&self) -> Option<u64> {
        self.serial_group
    }

    /// Returns the access of the entity's method, or the default access if no entity has the id.
    async fn access(&self, arguments: &Arguments, context: &ToolContext) -> CallAccess {
        let mut arguments = arguments.clone();
        match arguments.remove(&self.parameter) {
            Some(Value::String(id)) => match self.method_of(&id) {
                Some(tool) => tool.access(&arguments, context).await,
                None => CallAccess::default(),
            },
            _ => CallAccess::default(),
        }
    }

    async fn call(&self, mut arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Some(Value::String(id)) = arguments.remove(&self.parameter) else {
            let message = format!("/{}: must be the id of a `{}`", self.parameter, self.prefix);
            return Err(ToolError::invalid_arguments(message));
        };
        match self.method_of(&id) {
            Some(tool) => tool.call(arguments, context).await,
            None => {
                let shown: String = id.chars().take(80).collect();
                let message = format!(
                    "/{}: there is no `{}` with the id `{shown}`",
                    self.parameter, self.prefix
                );
                Err(ToolError::invalid_arguments(message))
            }
        }
    }
}
