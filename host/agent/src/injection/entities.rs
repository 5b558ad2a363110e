//! The entities that a conversation has met.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::change::DiscoveredEntity;
use super::shared::SharedEntities;
use toolwit_core::ToolId;

/// Tells an entity from every other: two objects with the same key are one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EntityIdentity {
    /// Whose type it is, so that one plugin never rebinds another's entity.
    pub namespace: String,
    /// The type's name in tool names.
    pub prefix: String,
    /// Which one of the type.
    pub id: String,
}

impl EntityIdentity {
    /// Makes a key.
    #[must_use]
    pub fn new(namespace: impl Into<String>, prefix: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            prefix: prefix.into(),
            id: id.into(),
        }
    }
}

/// Which instance an entity's tools are bound to after it was returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EntityBinding {
    /// It was not known before.
    New,
    /// It was known; the live instance stays.
    Kept,
    /// It was known; the newest instance took its place.
    Rebound,
}

/// What is known about one entity.
#[derive(Clone, Debug)]
struct Known {
    tools: Vec<ToolId>,
    depth: u32,
}

/// The entities of one conversation and which tools are theirs.
#[derive(Clone, Debug, Default)]
pub struct Entities {
    known: HashMap<EntityIdentity, Known>,
    depths: HashMap<ToolId, u32>,
    unnamed: usize,
    /// Entities that share their tools, by namespace and type.
    shared: HashMap<(String, String), SharedEntities>,
    /// Methods whose objects did not come along when the conversation was resumed.
    lost: HashSet<ToolId>,
}

impl Entities {
    /// Remembers an entity.
    pub fn record(&mut self, discovery: &DiscoveredEntity) {
        for tool in &discovery.tools {
            self.depths.entry(tool.clone()).or_insert(discovery.depth);
        }
        if let Some(shared) = &discovery.shared {
            let of = (discovery.namespace.clone(), discovery.prefix.clone());
            self.shared.insert(of, shared.clone());
            return;
        }
        let Some(key) = &discovery.key else {
            self.unnamed += usize::from(discovery.binding == EntityBinding::New);
            return;
        };
        let known = self.known.entry(key.clone()).or_insert_with(|| Known {
            tools: Vec::new(),
            depth: discovery.depth,
        });
        for tool in &discovery.tools {
            if !known.tools.contains(tool) {
                known.tools.push(tool.clone());
            }
        }
    }

    /// Notes that there is no object behind a method any more.
    pub(crate) fn lose(&mut self, method: ToolId) {
        self.lost.insert(method);
    }

    /// Notes that there is an object behind a method again.
    pub(crate) fn recover(&mut self, method: &ToolId) {
        self.lost.remove(method);
    }

    /// Tells whether a method's object did not come along when the conversation was resumed.
    #[must_use]
    pub fn is_lost(&self, method: &ToolId) -> bool {
        self.lost.contains(method)
    }

    /// Returns the tools of an entity that was met before.
    #[must_use]
    pub fn tools_of(&self, key: &EntityIdentity) -> Option<&[ToolId]> {
        self.known.get(key).map(|known| known.tools.as_slice())
    }

    /// Returns the entities of a type that share their tools.
    #[must_use]
    pub fn shared(&self, namespace: &str, prefix: &str) -> Option<&SharedEntities> {
        self.shared.get(&(namespace.to_owned(), prefix.to_owned()))
    }

    /// Returns how deep an entity lies that was met before.
    #[must_use]
    pub fn depth_of(&self, key: &EntityIdentity) -> Option<u32> {
        self.known.get(key).map(|known| known.depth)
    }

    /// Returns how deep the entity lies whose method this is; 0 for a tool that is no entity's.
    #[must_use]
    pub fn depth_of_tool(&self, tool: &ToolId) -> u32 {
        self.depths.get(tool).copied().unwrap_or(0)
    }

    /// Returns how many entities were met.
    #[must_use]
    pub fn len(&self) -> usize {
        let shared: usize = self.shared.values().map(SharedEntities::len).sum();
        self.known.len() + self.unnamed + shared
    }

    /// Tells whether none was met.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
