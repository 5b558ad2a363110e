//! The entities of a conversation.

use std::collections::{HashMap, HashSet};

use super::discovered_entity::{DiscoveredEntity, EntityBinding, EntityIdentity};
use super::shared_entities::SharedEntities;
use toolwit_core::{Rebinding, ToolId};

/// The tools and the depth of one entity.
#[derive(Clone, Debug)]
struct EntityRecord {
    tools: Vec<ToolId>,
    depth: u32,
}

/// The entities of one conversation and their tools.
///
/// The conversation owns this state and the loop updates it. Strategies only read it.
#[derive(Clone, Debug, Default)]
pub struct Entities {
    by_identity: HashMap<EntityIdentity, EntityRecord>,
    depths: HashMap<ToolId, u32>,
    /// Methods that act on the newest instance of their entity.
    latest: HashSet<ToolId>,
    /// Number of entities without an id.
    unnamed: usize,
    /// Groups of entities that share their tools, by namespace and type.
    shared: HashMap<(String, String), SharedEntities>,
    /// Methods whose object was not recovered when the conversation was resumed.
    lost: HashSet<ToolId>,
}

impl Entities {
    /// Records an entity that a result returned.
    pub fn record(&mut self, discovery: &DiscoveredEntity) {
        for tool in &discovery.tools {
            self.depths.entry(tool.clone()).or_insert(discovery.depth);
            if discovery.rebinding == Rebinding::Latest {
                self.latest.insert(tool.clone());
            }
        }
        if let Some(shared) = &discovery.shared {
            let entity_type = (discovery.namespace.clone(), discovery.prefix.clone());
            self.shared.insert(entity_type, shared.add_members());
            let has_own_tools = |key: &EntityIdentity| self.by_identity.contains_key(key);
            if !discovery.identity.as_ref().is_some_and(has_own_tools) {
                return;
            }
        }
        let Some(key) = &discovery.identity else {
            self.unnamed += usize::from(discovery.binding == EntityBinding::New);
            return;
        };
        let record = self.by_identity.entry(key.clone()).or_insert_with(|| EntityRecord {
            tools: Vec::new(),
            depth: discovery.depth,
        });
        for tool in &discovery.tools {
            if !record.tools.contains(tool) {
                record.tools.push(tool.clone());
            }
        }
    }

    /// Marks a method as having no object.
    pub(crate) fn mark_lost(&mut self, method: ToolId) {
        self.lost.insert(method);
    }

    /// Marks a method as having an object again.
    pub(crate) fn mark_recovered(&mut self, method: &ToolId) {
        self.lost.remove(method);
    }

    /// Returns whether a method's object was not recovered when the conversation was resumed.
    #[must_use]
    pub fn is_lost(&self, method: &ToolId) -> bool {
        self.lost.contains(method)
    }

    /// Returns whether a method is bound to another instance when its entity is returned again.
    pub(crate) fn may_rebind(&self, method: &ToolId) -> bool {
        self.latest.contains(method) || self.is_lost(method)
    }

    /// Returns the own tools of an entity, or `None` if it has none, such as a member of a group.
    #[must_use]
    pub fn tools_of(&self, key: &EntityIdentity) -> Option<&[ToolId]> {
        self.by_identity.get(key).map(|record| record.tools.as_slice())
    }

    /// Returns the entities of a type that share their tools.
    #[must_use]
    pub fn shared(&self, namespace: &str, prefix: &str) -> Option<&SharedEntities> {
        self.shared.get(&(namespace.to_owned(), prefix.to_owned()))
    }

    /// Returns the recorded nesting depth of an entity, or `None` if it has no own tools.
    #[must_use]
    pub fn depth_of(&self, key: &EntityIdentity) -> Option<u32> {
        self.by_identity.get(key).map(|record| record.depth)
    }

    /// Returns the nesting depth of the entity to which a method belongs, or 0 for a tool that is not a method.
    #[must_use]
    pub fn depth_of_tool(&self, tool: &ToolId) -> u32 {
        self.depths.get(tool).copied().unwrap_or(0)
    }

    /// Returns the number of entities.
    #[must_use]
    pub fn len(&self) -> usize {
        if self.shared.is_empty() {
            return self.by_identity.len() + self.unnamed;
        }
        let own = self.by_identity.keys();
        let own = own.filter(|key| {
            !self
                .shared(&key.namespace, &key.prefix)
                .is_some_and(|group| group.contains(&key.id))
        });
        let shared: usize = self.shared.values().map(SharedEntities::len).sum();
        own.count() + self.unnamed + shared
    }

    /// Returns whether the conversation has no entities.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
