//! Groups: many entities of a type that share their methods.

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

/// The entities of one type that share one set of tools: the shared methods of the group.
///
/// The conversation's [`Entities`](super::Entities) hold the group; clones refer to the same group. The shared methods take the
/// id of a member as an argument and look the member up in each call. A later result can therefore add members without
/// replacing these tools. A strategy never changes the group: it returns a [`GroupAddition`] with the members to add, and
/// [`Entities::record`](super::Entities::record) adds them.
#[derive(Clone)]
pub struct EntityGroup {
    /// The members by id.
    members: Arc<RwLock<HashMap<String, Arc<dyn ToolProvider>>>>,
    /// The [serial group](Tool::serial_group) of the calls of shared methods that do not select an existing member. A shared
    /// method uses it only if the method of the members has a serial group.
    serial_group: u64,
}

impl Default for EntityGroup {
    fn default() -> Self {
        Self {
            members: Arc::default(),
            serial_group: new_serial_group(),
        }
    }
}

impl EntityGroup {
    pub(in crate::injection) fn contains(&self, id: &str) -> bool {
        self.members
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains_key(id)
    }

    /// Adds entities. If an entity is a member already, the new instance replaces it only with [`Rebinding::Latest`], or if it
    /// belongs to another version of its code.
    fn add(&self, entities: &[Arc<dyn ToolProvider>]) {
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        for entity in entities {
            let Some(id) = entity.instance_id() else { continue };
            match entity.rebinding() {
                Rebinding::Keep
                    if members
                        .get(&id)
                        .is_some_and(|member| member.version() == entity.version()) => {}
                Rebinding::Keep | Rebinding::Latest => drop(members.insert(id, entity.clone())),
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn get(&self, id: &str) -> Option<Arc<dyn ToolProvider>> {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        members.get(id).cloned()
    }

    /// Returns the decorators that a call of a shared method applies for the member with this id: those of the member's method.
    /// `method` is the id of the unbound method. The list is empty if the member does not exist or does not have the method.
    fn decorators_of(&self, id: &str, method: &ToolId) -> Vec<Arc<dyn Decorator>> {
        let tools = self.get(id).map(|member| member.tools()).unwrap_or_default();
        let tool = tools.iter().find(|tool| tool.definition().id.unbound() == *method);
        let layers = tool.into_iter().flat_map(decorator_chain);
        layers.filter_map(|layer| layer.decorator()).cloned().collect()
    }

    /// Creates the shared methods of the group from the methods of one member. They take the id of a member as an argument.
    pub(in crate::injection) fn shared_methods(&self, member: &dyn ToolProvider) -> Vec<Arc<dyn Tool>> {
        let to_shared_method = |method: Arc<dyn Tool>| {
            let shared_method = SharedMethod::new(self.clone(), member.prefix(), &*method);
            Arc::new(shared_method) as Arc<dyn Tool>
        };
        member.tools().into_iter().map(to_shared_method).collect()
    }
}

impl fmt::Debug for EntityGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entities", self.len())
    }
}

impl PartialEq for EntityGroup {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.members, &other.members)
    }
}

impl Eq for EntityGroup {}

/// A member of a group that also has its own tools. The shared methods of the group call these tools.
pub(in crate::injection) struct MemberWithOwnTools {
    entity: Arc<dyn ToolProvider>,
    own_tools: Vec<Arc<dyn Tool>>,
}

impl MemberWithOwnTools {
    pub(in crate::injection) fn new(entity: Arc<dyn ToolProvider>, own_tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { entity, own_tools }
    }
}

impl ToolProvider for MemberWithOwnTools {
    fn prefix(&self) -> &str {
        self.entity.prefix()
    }

    fn instance_id(&self) -> Option<String> {
        self.entity.instance_id()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.own_tools.clone()
    }

    fn namespace(&self) -> &str {
        self.entity.namespace()
    }

    fn version(&self) -> &str {
        self.entity.version()
    }
}

/// The entities of a result that become members of a group, with the group.
#[derive(Clone)]
pub struct GroupAddition {
    group: EntityGroup,
    members: Vec<Arc<dyn ToolProvider>>,
}

impl GroupAddition {
    pub(in crate::injection) fn new(group: EntityGroup, members: Vec<Arc<dyn ToolProvider>>) -> Self {
        Self { group, members }
    }

    /// Compares the guards of the members' own tools for a method with the guards that a call of the shared method applies.
    /// Returns the guards that the call would skip, so that the caller can attach them to the shared method.
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
            let identity = EntityIdentity::new(member.namespace(), member.prefix(), id);
            let own_tool_ids = entities.own_tools_of(&identity).unwrap_or_default().iter();
            let own_method_ids = own_tool_ids.filter(|id| id.unbound() == method).cloned();
            // A resume restores tools and their guards, but does not record entities. So the id that the member's own method
            // has after a resume is looked up too.
            let mut guards: Vec<_> = own_method_ids
                .chain([method.bound_to(&identity.id)])
                .flat_map(|id| tools.guards(&id))
                .collect();
            if !guards.is_empty() {
                let applied_guards = self.group.decorators_of(&identity.id, &method);
                guards.retain(|guard| !applied_guards.iter().any(|applied| Arc::ptr_eq(applied, guard)));
            }
            missing.extend(guards);
        }
        missing
    }

    /// Adds the members to the group and returns the group.
    pub(super) fn add_members(&self) -> EntityGroup {
        self.group.add(&self.members);
        self.group.clone()
    }
}

impl fmt::Debug for GroupAddition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} members for {:?}", self.members.len(), self.group)
    }
}

impl PartialEq for GroupAddition {
    fn eq(&self, other: &Self) -> bool {
        self.group == other.group
            && self.members.len() == other.members.len()
            && self.members.iter().zip(&other.members).all(|(a, b)| Arc::ptr_eq(a, b))
    }
}

impl Eq for GroupAddition {}

/// Returns the id under which a group shares a method.
pub(crate) fn shared_method_id(method: &ToolId) -> ToolId {
    method.unbound().bound_by("any")
}

/// A method of the members of a group, as one tool. An argument selects the member on which a call acts.
struct SharedMethod {
    definition: ToolDefinition,
    group: EntityGroup,
    prefix: String,
    /// Name of the parameter that takes the id of the member.
    id_parameter: String,
    /// Id of the method, not bound to an entity.
    unbound_id: ToolId,
    /// The serial group of calls that do not select a member with the method.
    serial_group: Option<u64>,
}

impl SharedMethod {
    fn new(group: EntityGroup, prefix: &str, member_method: &dyn Tool) -> Self {
        let serial_group = member_method.serial_group().map(|_| group.serial_group);
        let mut definition = member_method.definition().clone();
        let unbound_id = definition.id.unbound();
        let mut id_parameter = format!("{prefix}_id");
        let mut schema = Value::clone(&definition.input_schema);
        if let Some(fields) = schema.as_object_mut() {
            let mut properties = match fields.remove("properties") {
                Some(Value::Object(properties)) => properties,
                _ => Map::new(),
            };
            // The method may have a parameter with this name.
            while properties.contains_key(&id_parameter) {
                id_parameter.insert_str(0, "the_");
            }
            let id_schema = json!({"type": "string", "description": format!("The id of the `{prefix}`.")});
            properties.shift_insert(0, id_parameter.clone(), id_schema);
            let mut required = vec![json!(id_parameter)];
            if let Some(Value::Array(required_by_method)) = fields.remove("required") {
                required.extend(required_by_method);
            }
            fields.insert("properties".to_owned(), properties.into());
            fields.insert("required".to_owned(), required.into());
        }
        definition.id = shared_method_id(&unbound_id);
        definition.names = vec![method_tool_name(prefix, &unbound_id)];
        definition.input_schema = Arc::new(schema);
        Self {
            definition,
            group,
            prefix: prefix.to_owned(),
            id_parameter,
            unbound_id,
            serial_group,
        }
    }

    /// Returns the method of the member with this id, or `None` if there is no such member or it does not have the method.
    fn method_of(&self, id: &str) -> Option<Arc<dyn Tool>> {
        let mut tools = self.group.get(id)?.tools().into_iter();
        tools.find(|tool| tool.definition().id.unbound() == self.unbound_id)
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

    /// Returns the serial group of the method that the call runs, so that calls on one object run in order, whether they use
    /// the shared method or the object's own tool.
    fn serial_group_for(&self, arguments: &Arguments) -> Option<u64> {
        let id = arguments.get(&self.id_parameter).and_then(Value::as_str);
        match id.and_then(|id| self.method_of(id)) {
            Some(method) => method.serial_group_for(arguments),
            None => self.serial_group,
        }
    }

    /// Returns the access of the method that the call runs, or the default access if the arguments do not select a method.
    async fn access(&self, arguments: &Arguments, context: &ToolContext) -> CallAccess {
        let mut arguments = arguments.clone();
        match arguments.remove(&self.id_parameter) {
            Some(Value::String(id)) => match self.method_of(&id) {
                Some(tool) => tool.access(&arguments, context).await,
                None => CallAccess::default(),
            },
            _ => CallAccess::default(),
        }
    }

    async fn call(&self, mut arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Some(Value::String(id)) = arguments.remove(&self.id_parameter) else {
            let message = format!("/{}: must be the id of a `{}`", self.id_parameter, self.prefix);
            return Err(ToolError::invalid_arguments(message));
        };
        match self.method_of(&id) {
            Some(tool) => tool.call(arguments, context).await,
            None => {
                let shown_id: String = id.chars().take(80).collect();
                let reason = if self.group.contains(&id) {
                    "does not have this method"
                } else {
                    "does not exist"
                };
                let message = format!(
                    "/{}: the `{}` with the id `{shown_id}` {reason}",
                    self.id_parameter, self.prefix
                );
                Err(ToolError::invalid_arguments(message))
            }
        }
    }
}
