//! Entities that a result returned, and the instances to which their tools are bound.

use serde::{Deserialize, Serialize};

use super::shared_entities::SharedDiscovery;
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

/// The instance to which an entity's tools are bound after a result returned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntityBinding {
    /// The entity is new: its tools are bound to this instance.
    New,
    /// The entity was returned before: its tools stay bound to the earlier instance.
    Kept,
    /// The entity was returned before: its tools are rebound to this instance.
    Rebound,
}

/// An entity in a result, or a group of entities that share their tools.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveredEntity {
    /// Identity of the entity, or `None` if it has no id or is a group.
    pub identity: Option<EntityIdentity>,
    /// Name of its type, as used in tool names.
    pub prefix: String,
    /// Ids of its methods.
    pub tools: Vec<ToolId>,
    /// Nesting depth: 1 for an entity that an initial tool returned, one more for each entity in between.
    pub depth: u32,
    /// Whether it is new, and the instance to which its tools are bound.
    pub binding: EntityBinding,
    /// Whether its tools are rebound when a result returns it again.
    pub rebinding: Rebinding,
    /// The group, if the result holds many entities of the type.
    pub shared: Option<SharedDiscovery>,
    /// Namespace of its type.
    pub namespace: String,
}
