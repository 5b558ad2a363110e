//! The record of an entity that a result returned.

use serde::{Deserialize, Serialize};

use super::entity_group::GroupAddition;
use toolwit_core::{Rebinding, ToolId};

/// The identity of an entity. Two objects with the same identity are the same entity.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntityIdentity {
    /// Owner of the type. It prevents a plugin from rebinding another plugin's entity.
    pub namespace: String,
    /// Name of the type, as used in tool names.
    pub prefix: String,
    /// Id of the entity within its type.
    pub id: String,
}

impl EntityIdentity {
    /// Creates an identity.
    #[must_use]
    pub fn new(namespace: impl Into<String>, prefix: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            prefix: prefix.into(),
            id: id.into(),
        }
    }
}

/// The instance to which the tools of an entity are bound after a result returned the entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntityBinding {
    /// The entity is new: its tools are bound to this instance.
    New,
    /// The entity was returned before: its tools stay bound to the earlier instance.
    Kept,
    /// The entity was returned before, or its tools were bound to another object: they are rebound to this instance.
    Rebound,
}

/// An entity in a result, or a [group](super::EntityGroup) of entities that share their tools.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveredEntity {
    /// Identity of the entity, or `None` if it has no id or is a group.
    pub identity: Option<EntityIdentity>,
    /// Name of its type, as used in tool names.
    pub prefix: String,
    /// Ids of the tools that act on it: its own methods, or the shared methods of its group.
    pub tools: Vec<ToolId>,
    /// [Version](toolwit_core::ToolProvider::version) of the code that the entity belongs to.
    pub version: String,
    /// The instance to which its tools are bound now.
    pub binding: EntityBinding,
    /// The instance to which its tools are bound when a result returns it again.
    pub rebinding: Rebinding,
    /// The members that [`Entities::record`](super::Entities::record) adds to a group. For a group, these are its entities in
    /// the result. For an entity that is already a member of a group, it is this entity. `None` for other entities.
    pub group_addition: Option<GroupAddition>,
    /// Namespace of its type.
    pub namespace: String,
}
