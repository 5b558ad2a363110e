//! The default strategy for entities: a result's objects add their methods as tools.

use std::collections::HashSet;
use std::sync::Arc;

use indexmap::IndexMap;

use super::entity::{
    DiscoveredEntity, Entities, EntityBinding, EntityGroup, EntityIdentity, GroupAddition, MemberWithOwnTools,
};
use super::strategy::{Injection, InjectionStrategy};
use super::view::InjectionContext;
use toolwit_core::limits::{ENTITIES_WITH_OWN_TOOLS_MAX, ENTITY_ID_BYTES_MAX};
use toolwit_core::{Rebinding, RejectedProvider, Tool, ToolExt, ToolId, ToolProvider};

/// Adds the methods of every [`ToolProvider`] in a result as tools, each bound to its live object.
///
/// If a result holds more than [`ENTITIES_WITH_OWN_TOOLS_MAX`] objects of one type that have ids, these objects form an
/// [`EntityGroup`]: they share one set of tools, which take the object's id as an argument. An entity that got its own tools
/// before it joins a group keeps them. Both sets of tools then act on the same live object. Objects without an id always share
/// one set of tools, which takes the number that the conversation gave them.
///
/// An entity that is returned again does not add tools: names and definitions stay, and its [`Rebinding`] decides on which
/// instance its tools act. If it now belongs to another [version](ToolProvider::version) of its code, such as a plugin that was
/// replaced, its tools act on the new instance, and the methods that this version does not have leave. Methods can return
/// further entities, to any depth. An object without methods is ignored. An object with an invalid id is rejected with the
/// reason. The injection also lists the objects that the tool itself rejected
/// ([`ToolResult::rejected`](toolwit_core::ToolResult::rejected)).
///
/// The strategy is stateless. Entities are recorded in the conversation's [`Entities`](super::Entities).
#[derive(Clone, Copy, Debug, Default)]
pub struct EntityTools;

impl InjectionStrategy for EntityTools {
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        let mut evaluation = Evaluation {
            context,
            injection: Injection::none(),
            discovered_identities: HashSet::new(),
            discovered_tool_ids: HashSet::new(),
        };
        let call = context.call();
        let already_rejected = call.result.rejected.iter().cloned();
        evaluation.injection.rejected.extend(already_rejected);
        let entities = context.entities();
        for batch in split_into_batches(&call.result.providers, entities) {
            match batch.as_slice() {
                [] => {}
                [entity] if !has_number(entity.as_ref(), entities) => evaluation.add_entity(entity),
                batch => evaluation.add_group(batch),
            }
        }
        evaluation.injection
    }
}

/// The evaluation of one result.
struct Evaluation<'a> {
    context: &'a InjectionContext<'a>,
    injection: Injection,
    /// Identities of the entities in this result that were processed so far and have their own tools.
    discovered_identities: HashSet<EntityIdentity>,
    /// Ids of the methods of these entities, and of the entities without an identity that were processed so far.
    discovered_tool_ids: HashSet<ToolId>,
}

impl Evaluation<'_> {
    /// Processes one object: adds its methods as tools, records that a member of a group was returned again, or records that
    /// the object is rejected.
    fn add_entity(&mut self, provider: &Arc<dyn ToolProvider>) {
        let identity = identity_of(provider.as_ref());
        if let Some(reason) = rejection_reason(identity.as_ref().map(|identity| identity.id.as_str())) {
            let rejected = RejectedProvider::new(provider.prefix(), reason);
            self.injection.rejected.push(rejected);
            return;
        }
        let group = identity.as_ref().and_then(|identity| self.group_of(identity));
        if let (Some(identity), Some(group)) = (&identity, &group)
            && self.context.entities().own_tools_of(identity).is_none()
        {
            self.record_returned_member(identity, group, provider);
            return;
        }
        let methods = provider.tools();
        if methods.is_empty() {
            return;
        }
        let tools: Vec<_> = methods
            .into_iter()
            .map(|method| self.with_unique_id(identity.as_ref(), method))
            .collect();
        let binding = self.binding(identity.as_ref(), &tools, provider.as_ref());
        let ids: Vec<_> = tools.iter().map(|tool| tool.definition().id.clone()).collect();
        for tool in tools {
            if binding == EntityBinding::Rebound || !self.is_present(&tool.definition().id) {
                self.injection.add.push(tool);
            }
        }
        self.remove_methods_of_other_version(identity.as_ref(), &ids, provider.version());
        self.discovered_tool_ids.extend(ids.iter().cloned());
        self.discovered_identities.extend(identity.clone());
        self.injection.discovered.push(DiscoveredEntity {
            identity,
            prefix: provider.prefix().to_owned(),
            tools: ids,
            version: provider.version().to_owned(),
            binding,
            rebinding: provider.rebinding(),
            group_addition: group.map(|group| GroupAddition::new(group, vec![provider.clone()])),
            namespace: provider.namespace().to_owned(),
        });
    }

    /// Returns the group of which an entity is a member, or `None` if it is not a member of a group.
    fn group_of(&self, identity: &EntityIdentity) -> Option<EntityGroup> {
        let group = self.context.entities().group(&identity.namespace, &identity.prefix)?;
        group.contains(&identity.id).then(|| group.clone())
    }

    /// Records that a group's member without its own tools was returned again, in a result with few entities. The member
    /// keeps using the shared methods of the group.
    fn record_returned_member(
        &mut self,
        identity: &EntityIdentity,
        group: &EntityGroup,
        provider: &Arc<dyn ToolProvider>,
    ) {
        let shared_methods = group.shared_methods(provider.as_ref());
        let ids: Vec<_> = shared_methods.iter().map(|tool| tool.definition().id.clone()).collect();
        let is_of_other_version = self.is_of_other_version(&ids, provider.version());
        if is_of_other_version {
            self.injection.add.extend(shared_methods);
        }
        self.injection.discovered.push(DiscoveredEntity {
            identity: Some(identity.clone()),
            prefix: identity.prefix.clone(),
            tools: ids,
            version: provider.version().to_owned(),
            binding: match provider.rebinding() {
                Rebinding::Keep if !is_of_other_version => EntityBinding::Kept,
                Rebinding::Keep | Rebinding::Latest => EntityBinding::Rebound,
            },
            rebinding: provider.rebinding(),
            group_addition: Some(GroupAddition::new(group.clone(), vec![provider.clone()])),
            namespace: identity.namespace.clone(),
        });
    }

    /// Returns the member that stands for an entity in a group. If the entity has its own tools and stays bound to its first
    /// instance, the member calls these tools, so that both sets of tools act on one instance.
    fn as_member(&self, entity: Arc<dyn ToolProvider>) -> Arc<dyn ToolProvider> {
        let own_tool_ids = self.own_tool_ids_of(entity.as_ref());
        let stays_bound =
            |ids: &&[ToolId]| entity.rebinding() == Rebinding::Keep && !self.is_of_other_version(ids, entity.version());
        match own_tool_ids.filter(stays_bound) {
            Some(ids) => {
                let own_tools = ids.iter().filter_map(|id| self.context.tools().by_id(id));
                Arc::new(MemberWithOwnTools::new(
                    entity,
                    own_tools.map(|tool| tool.tool.clone()).collect(),
                ))
            }
            None => entity,
        }
    }

    /// Returns the ids of the entity's own tools, or `None` if it has no own tools.
    fn own_tool_ids_of(&self, entity: &dyn ToolProvider) -> Option<&[ToolId]> {
        self.context.entities().own_tools_of(&identity_of(entity)?)
    }

    /// Makes the entities of a type members of a group, and adds the shared methods of the group if the conversation does not
    /// have them. Entities that have their own tools keep them.
    fn add_group(&mut self, entities: &[Arc<dyn ToolProvider>]) {
        let (accepted, rejected): (Vec<_>, Vec<_>) = entities
            .iter()
            .cloned()
            .partition(|entity| rejection_reason(entity.instance_id().as_deref()).is_none());
        let has_own_tools = |entity: &&Arc<dyn ToolProvider>| self.own_tool_ids_of(entity.as_ref()).is_some();
        let with_own_tools: Vec<_> = accepted.iter().filter(has_own_tools).cloned().collect();
        // `add_entity` records the reason of each rejection.
        rejected
            .iter()
            .chain(&with_own_tools)
            .for_each(|entity| self.add_entity(entity));
        let members: Vec<_> = accepted.into_iter().map(|entity| self.as_member(entity)).collect();
        let Some(first_member) = members.iter().find(|member| !member.tools().is_empty()) else {
            return;
        };
        let existing_group = self
            .context
            .entities()
            .group(first_member.namespace(), first_member.prefix());
        let group = existing_group.cloned().unwrap_or_default();
        let shared_methods = group.shared_methods(first_member.as_ref());
        let ids: Vec<_> = shared_methods.iter().map(|tool| tool.definition().id.clone()).collect();
        let has_lost_method = ids.iter().any(|id| self.context.entities().is_lost(id));
        let is_of_other_version = self.is_of_other_version(&ids, first_member.version());
        if existing_group.is_none() || has_lost_method || is_of_other_version {
            self.injection.add.extend(shared_methods);
        }
        self.injection.discovered.push(DiscoveredEntity {
            identity: None,
            prefix: first_member.prefix().to_owned(),
            tools: ids,
            version: first_member.version().to_owned(),
            binding: match existing_group {
                Some(_) if is_of_other_version => EntityBinding::Rebound,
                Some(_) => EntityBinding::Kept,
                None => EntityBinding::New,
            },
            rebinding: first_member.rebinding(),
            namespace: first_member.namespace().to_owned(),
            group_addition: Some(GroupAddition::new(group, members.clone())),
        });
    }

    /// Returns whether one of these methods acts on an object of another version than this one.
    fn is_of_other_version(&self, methods: &[ToolId], version: &str) -> bool {
        let entities = self.context.entities();
        methods
            .iter()
            .any(|method| entities.is_of_other_version(method, version))
    }

    /// Removes the methods of an entity that only another version of its code had.
    fn remove_methods_of_other_version(
        &mut self,
        identity: Option<&EntityIdentity>,
        current: &[ToolId],
        version: &str,
    ) {
        let entities = self.context.entities();
        let own_tools = identity
            .and_then(|identity| entities.own_tools_of(identity))
            .unwrap_or_default();
        let removed = own_tools
            .iter()
            .filter(|method| !current.contains(method) && entities.is_of_other_version(method, version));
        self.injection.remove.extend(removed.cloned());
    }

    /// Returns the instance to which the methods of an entity are bound. If one of the methods was lost when the conversation
    /// was resumed, or acts on an object of another version, all of them are rebound. An entity without an identity counts as returned before if all its methods are
    /// present.
    fn binding(
        &self,
        identity: Option<&EntityIdentity>,
        methods: &[Arc<dyn Tool>],
        provider: &dyn ToolProvider,
    ) -> EntityBinding {
        let was_returned = match identity {
            Some(identity) => {
                self.context.entities().own_tools_of(identity).is_some()
                    || self.discovered_identities.contains(identity)
            }
            None => methods.iter().all(|method| self.is_present(&method.definition().id)),
        };
        let entities = self.context.entities();
        let acts_on_gone_object = methods.iter().map(|method| &method.definition().id).any(|method| {
            entities.is_lost(method)
                || (self.context.tools().by_id(method).is_some()
                    && entities.is_of_other_version(method, provider.version()))
        });
        match (was_returned, provider.rebinding()) {
            _ if acts_on_gone_object => EntityBinding::Rebound,
            (false, _) => EntityBinding::New,
            (true, Rebinding::Keep) => EntityBinding::Kept,
            (true, Rebinding::Latest) => EntityBinding::Rebound,
        }
    }

    /// Returns whether the conversation has a tool with this id, or will have it after this result.
    fn is_present(&self, id: &ToolId) -> bool {
        self.context.tools().by_id(id).is_some() || self.discovered_tool_ids.contains(id)
    }

    /// Returns a method of an entity, with a new id if another tool has its id. Without this, a type whose method ids are not
    /// unique would replace the tools of another entity. A method of an entity without an identity keeps its id.
    fn with_unique_id(&self, identity: Option<&EntityIdentity>, method: Arc<dyn Tool>) -> Arc<dyn Tool> {
        let Some(identity) = identity else { return method };
        let id = &method.definition().id;
        let own_tools = self.context.entities().own_tools_of(identity).unwrap_or_default();
        let mut discovered = self.injection.discovered.iter();
        let discovery = discovered.find(|discovery| discovery.identity.as_ref() == Some(identity));
        let is_own = own_tools.contains(id) || discovery.is_some_and(|discovery| discovery.tools.contains(id));
        if is_own || !self.is_present(id) || self.context.entities().is_lost(id) {
            return method;
        }
        let owner = format!("{}/{}/{}", identity.namespace, identity.prefix, identity.id);
        let (id, names) = (id.bound_to(&owner), method.definition().names.clone());
        Arc::new(method.with_identity(id, names))
    }
}

/// Returns the identity of an object, or `None` if it has no id.
fn identity_of(provider: &dyn ToolProvider) -> Option<EntityIdentity> {
    let id = provider.instance_id()?;
    Some(EntityIdentity::new(provider.namespace(), provider.prefix(), id))
}

/// Returns whether an object has a number instead of an id of its own.
fn has_number(provider: &dyn ToolProvider, entities: &Entities) -> bool {
    provider.instance_id().is_some() && entities.is_of_numbered_type(provider)
}

/// Splits the objects of a result into batches. If a type has more than [`ENTITIES_WITH_OWN_TOOLS_MAX`] objects with ids, or its
/// objects have numbers instead of ids, these objects form one batch. Every other object is a batch of its own. The batches with
/// one object come first.
fn split_into_batches(providers: &[Arc<dyn ToolProvider>], entities: &Entities) -> Vec<Vec<Arc<dyn ToolProvider>>> {
    let type_of = |entity: &Arc<dyn ToolProvider>| (entity.namespace().to_owned(), entity.prefix().to_owned());
    let mut objects_by_type: IndexMap<_, Vec<_>> = IndexMap::new();
    for provider in providers.iter().filter(|provider| provider.instance_id().is_some()) {
        objects_by_type
            .entry(type_of(provider))
            .or_default()
            .push(provider.clone());
    }
    objects_by_type.retain(|_, objects| {
        let has_numbers = objects.iter().any(|object| has_number(object.as_ref(), entities));
        has_numbers || objects.len() > ENTITIES_WITH_OWN_TOOLS_MAX
    });
    let large_batches = objects_by_type;
    let mut batches = Vec::new();
    for provider in providers {
        let is_one_of_many = provider.instance_id().is_some() && large_batches.contains_key(&type_of(provider));
        if !is_one_of_many {
            batches.push(vec![provider.clone()]);
        }
    }
    batches.extend(large_batches.into_values());
    batches
}

/// Returns the reason why the methods of an object with this id cannot become tools, or `None` if they can.
fn rejection_reason(id: Option<&str>) -> Option<String> {
    match id.map(str::len) {
        Some(0) => Some("its id is empty".to_owned()),
        Some(bytes) if bytes > ENTITY_ID_BYTES_MAX => {
            Some(format!("its id has {bytes} bytes; the limit is {ENTITY_ID_BYTES_MAX}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
