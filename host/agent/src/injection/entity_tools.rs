//! The default strategy for entities: a result's objects add their methods as tools.

use std::collections::HashSet;
use std::sync::Arc;

use indexmap::IndexMap;

use super::entity::{
    DiscoveredEntity, EntityBinding, EntityIdentity, MemberWithTools, SharedDiscovery, SharedEntities,
};
use super::strategy::{Injection, InjectionStrategy};
use super::view::InjectionContext;
use toolwit_core::limits::{ENTITIES_WITH_OWN_TOOLS_MAX, ENTITY_DEPTH_MAX, ENTITY_ID_BYTES_MAX};
use toolwit_core::{Rebinding, RejectedProvider, Tool, ToolExt, ToolId, ToolProvider};

/// Adds the methods of every [`ToolProvider`] in a result as tools, each bound to its live object.
///
/// If a result holds more than [`ENTITIES_WITH_OWN_TOOLS_MAX`] objects of one type, they share one set of tools, which take the
/// object's id as an argument. An entity has one live object. If it was returned alone before it joins a group, it keeps its own
/// tools, and the tools of the group call the same object.
///
/// An entity that is returned again does not add tools: names and definitions stay, and its [`Rebinding`] decides which
/// instance runs. Methods can return further entities, up to a depth of [`ENTITY_DEPTH_MAX`]. An object without methods
/// is ignored. An object whose id is empty or too long is rejected with the reason, like the objects that the tool
/// itself rejected ([`ToolResult::rejected`](toolwit_core::ToolResult::rejected)).
///
/// The strategy is stateless. Entities are recorded in the conversation's [`Entities`](super::Entities).
#[derive(Clone, Copy, Debug, Default)]
pub struct EntityTools;

impl InjectionStrategy for EntityTools {
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        let mut result = Evaluation {
            context,
            injection: Injection::none(),
            keys: HashSet::new(),
            tools: HashSet::new(),
        };
        let call = context.call();
        result.injection.rejected.extend(call.result.rejected.iter().cloned());
        let providers = &call.result.providers;
        for group in groups(providers) {
            match group.as_slice() {
                [] => {}
                [one] => result.add(one),
                many => result.add_shared(many),
            }
        }
        result.injection
    }
}

/// The evaluation of one result.
struct Evaluation<'a> {
    context: &'a InjectionContext<'a>,
    injection: Injection,
    keys: HashSet<EntityIdentity>,
    tools: HashSet<ToolId>,
}

impl Evaluation<'_> {
    fn add(&mut self, provider: &Arc<dyn ToolProvider>) {
        let key = provider
            .instance_id()
            .map(|id| EntityIdentity::new(provider.namespace(), provider.prefix(), id));
        let depth = self.depth_of(key.as_ref(), provider.as_ref());
        if let Some(reason) = rejection(key.as_ref(), depth) {
            let rejected = RejectedProvider::new(provider.prefix(), reason);
            self.injection.rejected.push(rejected);
            return;
        }
        let group = key.as_ref().and_then(|key| self.group_of(key));
        if let (Some(key), Some(group)) = (&key, &group)
            && self.context.entities().tools_of(key).is_none()
        {
            self.add_member(key, group, provider, depth);
            return;
        }
        let methods = provider.tools();
        if methods.is_empty() {
            return;
        }
        let tools: Vec<_> = methods
            .into_iter()
            .map(|method| self.with_unique_id(key.as_ref(), method))
            .collect();
        let binding = self.binding(key.as_ref(), &tools, provider.rebinding());
        let ids: Vec<_> = tools.iter().map(|tool| tool.definition().id.clone()).collect();
        for tool in tools {
            if binding == EntityBinding::Rebound || !self.is_present(&tool.definition().id) {
                self.injection.add.push(tool);
            }
        }
        self.tools.extend(ids.iter().cloned());
        self.keys.extend(key.clone());
        self.injection.discovered.push(DiscoveredEntity {
            identity: key,
            prefix: provider.prefix().to_owned(),
            tools: ids,
            depth,
            binding,
            rebinding: provider.rebinding(),
            shared: group.map(|group| SharedDiscovery::new(group, vec![provider.clone()])),
            namespace: provider.namespace().to_owned(),
        });
    }

    /// Returns the group of which an entity is a member, if an earlier result returned it together with many others.
    fn group_of(&self, key: &EntityIdentity) -> Option<SharedEntities> {
        let group = self.context.entities().shared(&key.namespace, &key.prefix)?;
        group.contains(&key.id).then(|| group.clone())
    }

    /// Adds an entity that is a member of a group and is returned again, alone. The entity keeps the tools of the
    /// group.
    fn add_member(
        &mut self,
        key: &EntityIdentity,
        group: &SharedEntities,
        provider: &Arc<dyn ToolProvider>,
        depth: u32,
    ) {
        let tools = group.tools(provider.as_ref());
        self.injection.discovered.push(DiscoveredEntity {
            identity: Some(key.clone()),
            prefix: key.prefix.clone(),
            tools: tools.iter().map(|tool| tool.definition().id.clone()).collect(),
            depth,
            binding: match provider.rebinding() {
                Rebinding::Keep => EntityBinding::Kept,
                Rebinding::Latest => EntityBinding::Rebound,
            },
            rebinding: provider.rebinding(),
            shared: Some(SharedDiscovery::new(group.clone(), vec![provider.clone()])),
            namespace: key.namespace.clone(),
        });
    }

    /// Returns the member of a group for an entity. If the entity has its own tools and stays bound to its first instance, the
    /// member calls these tools, so that both sets of tools act on one instance.
    fn as_member(&self, entity: Arc<dyn ToolProvider>) -> Arc<dyn ToolProvider> {
        let key = EntityIdentity::new(
            entity.namespace(),
            entity.prefix(),
            entity.instance_id().unwrap_or_default(),
        );
        let own = self.context.entities().tools_of(&key);
        match own.filter(|_| entity.rebinding() == Rebinding::Keep) {
            Some(own) => {
                let tools = own.iter().filter_map(|id| self.context.tools().by_id(id));
                Arc::new(MemberWithTools::new(
                    entity,
                    tools.map(|tool| tool.tool.clone()).collect(),
                ))
            }
            None => entity,
        }
    }

    /// Adds one set of tools for many entities of a type. The tools take the id of the entity on which they act. Entities that have
    /// tools of their own keep them.
    fn add_shared(&mut self, entities: &[Arc<dyn ToolProvider>]) {
        let (accepted, rejected): (Vec<_>, Vec<_>) = entities.iter().cloned().partition(|entity| {
            let key = entity.instance_id().map(|id| EntityIdentity::new("", "", id));
            rejection(key.as_ref(), self.depth_of(None, entity.as_ref())).is_none()
        });
        let has_tools = |entity: &&Arc<dyn ToolProvider>| {
            let id = entity.instance_id().unwrap_or_default();
            let key = EntityIdentity::new(entity.namespace(), entity.prefix(), id);
            self.context.entities().tools_of(&key).is_some()
        };
        let known: Vec<_> = accepted.iter().filter(has_tools).cloned().collect();
        rejected.iter().chain(&known).for_each(|entity| self.add(entity));
        let accepted: Vec<_> = accepted.into_iter().map(|entity| self.as_member(entity)).collect();
        let Some(first) = accepted.iter().find(|entity| !entity.tools().is_empty()) else {
            return;
        };
        let existing = self.context.entities().shared(first.namespace(), first.prefix());
        let shared = existing.cloned().unwrap_or_default();
        let tools = shared.tools(first.as_ref());
        let ids: Vec<_> = tools.iter().map(|tool| tool.definition().id.clone()).collect();
        let is_lost = ids.iter().any(|id| self.context.entities().is_lost(id));
        if existing.is_none() || is_lost {
            self.injection.add.extend(tools);
        }
        self.injection.discovered.push(DiscoveredEntity {
            identity: None,
            prefix: first.prefix().to_owned(),
            tools: ids,
            depth: self.depth_of(None, first.as_ref()),
            binding: if existing.is_some() {
                EntityBinding::Kept
            } else {
                EntityBinding::New
            },
            rebinding: first.rebinding(),
            namespace: first.namespace().to_owned(),
            shared: Some(SharedDiscovery::new(shared, accepted.clone())),
        });
    }

    /// Returns the depth of an entity: the recorded depth, otherwise the larger one of the provider's own depth and the depth of
    /// its parent plus one.
    fn depth_of(&self, key: Option<&EntityIdentity>, provider: &dyn ToolProvider) -> u32 {
        let entities = self.context.entities();
        let parent = &self.context.call().tool.definition().id;
        key.and_then(|key| entities.depth_of(key))
            .unwrap_or_else(|| provider.depth().max(entities.depth_of_tool(parent).saturating_add(1)))
    }

    fn binding(&self, key: Option<&EntityIdentity>, methods: &[Arc<dyn Tool>], rebinding: Rebinding) -> EntityBinding {
        let was_returned = match key {
            Some(key) => self.context.entities().tools_of(key).is_some() || self.keys.contains(key),
            None => methods.iter().all(|method| self.is_present(&method.definition().id)),
        };
        let entities = self.context.entities();
        let is_lost = methods.iter().any(|method| entities.is_lost(&method.definition().id));
        match (was_returned || is_lost, rebinding) {
            _ if is_lost => EntityBinding::Rebound,
            (false, _) => EntityBinding::New,
            (true, Rebinding::Keep) => EntityBinding::Kept,
            (true, Rebinding::Latest) => EntityBinding::Rebound,
        }
    }

    fn is_present(&self, id: &ToolId) -> bool {
        self.context.tools().by_id(id).is_some() || self.tools.contains(id)
    }

    /// Assigns a new id to a method if another tool has its id. Without this, a type whose method ids are not unique would
    /// replace the tools of another entity.
    fn with_unique_id(&self, key: Option<&EntityIdentity>, method: Arc<dyn Tool>) -> Arc<dyn Tool> {
        let Some(key) = key else { return method };
        let id = &method.definition().id;
        let own = self.context.entities().tools_of(key).unwrap_or_default();
        let discovered_here = self
            .injection
            .discovered
            .iter()
            .find(|d| d.identity.as_ref() == Some(key));
        let is_own = own.contains(id) || discovered_here.is_some_and(|d| d.tools.contains(id));
        if is_own || !self.is_present(id) || self.context.entities().is_lost(id) {
            return method;
        }
        let owner = format!("{}/{}/{}", key.namespace, key.prefix, key.id);
        let (id, names) = (id.bound_to(&owner), method.definition().names.clone());
        Arc::new(method.with_identity(id, names))
    }
}

/// Groups the objects of a result: objects of a type with more than [`ENTITIES_WITH_OWN_TOOLS_MAX`] instances form one group,
/// every other object is a group of one.
fn groups(providers: &[Arc<dyn ToolProvider>]) -> Vec<Vec<Arc<dyn ToolProvider>>> {
    let type_of = |entity: &Arc<dyn ToolProvider>| (entity.namespace().to_owned(), entity.prefix().to_owned());
    let mut of_type: IndexMap<_, Vec<_>> = IndexMap::new();
    for provider in providers.iter().filter(|provider| provider.instance_id().is_some()) {
        of_type.entry(type_of(provider)).or_default().push(provider.clone());
    }
    of_type.retain(|_, entities| entities.len() > ENTITIES_WITH_OWN_TOOLS_MAX);
    let mut groups = Vec::new();
    for provider in providers {
        let is_one_of_many = provider.instance_id().is_some() && of_type.contains_key(&type_of(provider));
        if !is_one_of_many {
            groups.push(vec![provider.clone()]);
        }
    }
    groups.extend(of_type.into_values());
    groups
}

/// Returns the reason why an object cannot become tools, or `None` if it can.
fn rejection(key: Option<&EntityIdentity>, depth: u32) -> Option<String> {
    match key.map(|key| key.id.len()) {
        Some(0) => Some("its id is empty".to_owned()),
        Some(bytes) if bytes > ENTITY_ID_BYTES_MAX => {
            Some(format!("its id has {bytes} bytes; the limit is {ENTITY_ID_BYTES_MAX}"))
        }
        _ if depth > ENTITY_DEPTH_MAX => Some(format!("its nesting depth is {depth}; the limit is {ENTITY_DEPTH_MAX}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
