//! The entities of a conversation.

use std::collections::{HashMap, HashSet};

use super::discovered_entity::{DiscoveredEntity, EntityBinding, EntityIdentity};
use super::entity_group::EntityGroup;
use toolwit_core::{Rebinding, ToolId, ToolProvider};

/// An entity that has its own tools.
#[derive(Clone, Debug)]
struct EntityRecord {
    own_tools: Vec<ToolId>,
}

/// The entities of one conversation and their tools.
///
/// The conversation owns the entities, and the loop updates them. Strategies only read them.
#[derive(Clone, Debug, Default)]
pub struct Entities {
    /// The entities that have an id and their own tools, by identity.
    by_identity: HashMap<EntityIdentity, EntityRecord>,
    /// The version of the code to which the object of each method belongs, unless it is empty.
    versions: HashMap<ToolId, String>,
    /// Methods that act on the newest instance of their entity.
    latest_methods: HashSet<ToolId>,
    /// Number of entities without an id.
    without_id_count: usize,
    /// Groups of entities that share their tools, by the namespace and the prefix of the type.
    groups: HashMap<(String, String), EntityGroup>,
    /// The types whose objects have numbers instead of ids, by namespace and prefix.
    numbered_types: HashSet<(String, String)>,
    /// The last number that an object without an id received.
    last_number: usize,
    /// Tools that could not be restored when the conversation was resumed, such as methods of an object in another process.
    lost_tools: HashSet<ToolId>,
}

impl Entities {
    /// Records an entity or a group that a result returned, and adds the members of its
    /// [`group_addition`](DiscoveredEntity::group_addition) to their group.
    pub fn record(&mut self, discovery: &DiscoveredEntity) {
        for tool in &discovery.tools {
            if !discovery.version.is_empty() {
                self.versions.insert(tool.clone(), discovery.version.clone());
            }
            if discovery.rebinding == Rebinding::Latest {
                self.latest_methods.insert(tool.clone());
            }
        }
        if let Some(addition) = &discovery.group_addition {
            let entity_type = (discovery.namespace.clone(), discovery.prefix.clone());
            self.groups.insert(entity_type, addition.add_members());
            let has_own_tools = |identity: &EntityIdentity| self.by_identity.contains_key(identity);
            // A group, and a member without its own tools, is only recorded in `groups`.
            if !discovery.identity.as_ref().is_some_and(has_own_tools) {
                return;
            }
        }
        let Some(identity) = &discovery.identity else {
            self.without_id_count += usize::from(discovery.binding == EntityBinding::New);
            return;
        };
        let record = self
            .by_identity
            .entry(identity.clone())
            .or_insert_with(|| EntityRecord { own_tools: Vec::new() });
        // The methods that only another version of the code had are gone.
        let versions = &self.versions;
        let is_current = |tool: &ToolId| versions.get(tool).is_none_or(|version| *version == discovery.version);
        record.own_tools.retain(is_current);
        for tool in &discovery.tools {
            if !record.own_tools.contains(tool) {
                record.own_tools.push(tool.clone());
            }
        }
    }

    /// Returns a number that no object has in a conversation with this number of completed calls.
    pub(super) fn next_number(&mut self, call_count: usize) -> usize {
        self.last_number = self.last_number.max(call_count).saturating_add(1);
        self.last_number
    }

    /// Records that the objects of a type have numbers instead of ids.
    pub(super) fn record_numbered_type(&mut self, provider: &dyn ToolProvider) {
        let numbered_type = (provider.namespace().to_owned(), provider.prefix().to_owned());
        self.numbered_types.insert(numbered_type);
    }

    /// Returns whether an object is of a type whose objects have numbers instead of ids.
    pub(in crate::injection) fn is_of_numbered_type(&self, provider: &dyn ToolProvider) -> bool {
        let numbered_type = || (provider.namespace().to_owned(), provider.prefix().to_owned());
        !self.numbered_types.is_empty() && self.numbered_types.contains(&numbered_type())
    }

    /// Marks a tool as one that could not be restored.
    pub(crate) fn mark_lost(&mut self, tool: ToolId) {
        self.lost_tools.insert(tool);
    }

    /// Removes the mark of a lost tool, because the tool was added again.
    pub(crate) fn mark_recovered(&mut self, tool: &ToolId) {
        self.lost_tools.remove(tool);
    }

    /// Returns whether a tool could not be restored when the conversation was resumed, and has not been added again since. An
    /// example is the method of an object in another process.
    #[must_use]
    pub fn is_lost(&self, tool: &ToolId) -> bool {
        self.lost_tools.contains(tool)
    }

    /// Returns whether a tool is lost; see [`is_lost`](Self::is_lost).
    pub(crate) fn has_lost_tools(&self) -> bool {
        !self.lost_tools.is_empty()
    }

    /// Returns whether a method may be bound to another instance when its entity is returned again.
    pub(crate) fn may_rebind(&self, method: &ToolId) -> bool {
        self.latest_methods.contains(method) || self.is_lost(method)
    }

    /// Returns the ids of the entity's own tools. Returns `None` if no result returned the entity, or if it uses only the shared
    /// methods of its group.
    #[must_use]
    pub fn own_tools_of(&self, identity: &EntityIdentity) -> Option<&[ToolId]> {
        self.by_identity.get(identity).map(|record| record.own_tools.as_slice())
    }

    /// Returns the group of a type, or `None` if the type has no group.
    #[must_use]
    pub fn group(&self, namespace: &str, prefix: &str) -> Option<&EntityGroup> {
        self.groups.get(&(namespace.to_owned(), prefix.to_owned()))
    }

    /// Returns whether a method acts on an object of another version than this one.
    pub(in crate::injection) fn is_of_other_version(&self, method: &ToolId, version: &str) -> bool {
        self.versions.get(method).is_some_and(|recorded| recorded != version)
    }

    /// Returns the number of entities.
    #[must_use]
    pub fn len(&self) -> usize {
        if self.groups.is_empty() {
            return self.by_identity.len() + self.without_id_count;
        }
        let is_member = |identity: &EntityIdentity| {
            self.group(&identity.namespace, &identity.prefix)
                .is_some_and(|group| group.contains(&identity.id))
        };
        let ungrouped_count = self.by_identity.keys().filter(|identity| !is_member(identity)).count();
        let member_count: usize = self.groups.values().map(EntityGroup::len).sum();
        ungrouped_count + self.without_id_count + member_count
    }

    /// Returns whether the conversation has no entities.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
