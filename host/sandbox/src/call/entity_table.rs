//! The entities of a session: the live resources by id, and the reasons why others no longer exist.

use std::collections::HashMap;
use std::sync::Arc;

use wasmtime::component::ResourceAny;

use crate::values::decode::{DecodeError, HandleTransfer, ResolveHandle, quoted};
use crate::values::types::{Function, FunctionKind, ResourceIndex, Shape, WitType};
use toolwit_core::text::snake_case;

/// The identity of an entity within its session: its type and its id.
pub(crate) type EntityKey = (ResourceIndex, String);

/// A live resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveEntity {
    pub(crate) handle: ResourceAny,
    /// The depth of the entity: 1 if a function returned it, or one more than the depth of the entity whose method returned it.
    pub(crate) depth: u32,
    /// Whether the entity shares its tools with the other entities of its type. The first result that contains the
    /// entity decides.
    pub(crate) shares_tools: bool,
}

/// The maximum number of removed entities whose reason a session stores.
const GONE_MAX: usize = 4_096;

/// The maximum number of tool names in a hint.
const NAMES_MAX: usize = 4;

/// The entities of one session, by type and id.
#[derive(Debug, Default)]
pub(crate) struct EntityTable {
    live: HashMap<EntityKey, LiveEntity>,
    /// The reason why each removed entity no longer exists.
    gone: HashMap<EntityKey, Arc<str>>,
    last_number: HashMap<ResourceIndex, u64>,
}

impl EntityTable {
    pub(crate) fn get(&self, key: &EntityKey) -> Option<LiveEntity> {
        self.live.get(key).copied()
    }

    pub(crate) fn insert(&mut self, key: EntityKey, entity: LiveEntity) -> Option<LiveEntity> {
        self.gone.remove(&key);
        self.live.insert(key, entity)
    }

    /// Removes an entity and stores the reason.
    pub(crate) fn remove(&mut self, key: &EntityKey, reason: &Arc<str>) {
        if self.live.remove(key).is_some() {
            self.record_removal(key.clone(), reason);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Removes all entities. Numbering continues, so that no number is assigned to two entities.
    pub(crate) fn clear(&mut self, reason: &Arc<str>) {
        for (key, _) in std::mem::take(&mut self.live) {
            self.record_removal(key, reason);
        }
    }

    /// Returns the reason why an entity no longer exists, or `None` if it never existed or is live.
    pub(crate) fn removal_reason(&self, key: &EntityKey) -> Option<&str> {
        self.gone.get(key).map(|reason| &**reason)
    }

    fn record_removal(&mut self, key: EntityKey, reason: &Arc<str>) {
        if self.gone.len() < GONE_MAX {
            self.gone.insert(key, reason.clone());
        }
    }

    /// Returns the next number for a type whose resources have no id.
    pub(crate) fn next_number(&mut self, resource: ResourceIndex) -> String {
        let number = self.last_number.entry(resource).or_default();
        *number += 1;
        number.to_string()
    }

    /// Returns the message for an id without an entity: the reason if the entity was removed, and the tools that return such
    /// entities.
    pub(crate) fn missing(&self, shape: &Shape, key: &EntityKey) -> String {
        let (resource, id) = key;
        let name = shape.resources[resource.0].json_name();
        let hint = shape.how_to_get(*resource);
        match self.removal_reason(key) {
            Some(reason) => format!("the `{name}` with the id `{id}` is gone: {reason}; {hint}"),
            None => format!("there is no `{name}` with the id {}; {hint}", quoted(id)),
        }
    }
}

/// Resolves the ids in a call's arguments, and records which entities the call takes ownership of and which it borrows.
pub(crate) struct EntityHandles<'a> {
    entities: &'a EntityTable,
    shape: &'a Shape,
    pub(crate) given: Vec<EntityKey>,
    lent: Vec<EntityKey>,
}

impl<'a> EntityHandles<'a> {
    pub(crate) fn new(entities: &'a EntityTable, shape: &'a Shape) -> Self {
        Self {
            entities,
            shape,
            given: Vec::new(),
            lent: Vec::new(),
        }
    }
}

impl ResolveHandle for EntityHandles<'_> {
    fn resolve(
        &mut self,
        resource: ResourceIndex,
        id: &str,
        transfer: HandleTransfer,
    ) -> Result<ResourceAny, DecodeError> {
        let key = (resource, id.to_owned());
        let Some(entity) = self.entities.get(&key) else {
            return Err(DecodeError::new(self.entities.missing(self.shape, &key)));
        };
        let has_conflict = match transfer {
            HandleTransfer::Own => self.given.contains(&key) || self.lent.contains(&key),
            HandleTransfer::Borrow => self.given.contains(&key),
        };
        if has_conflict {
            return Err(DecodeError::new(format!(
                "the entity `{id}` is named by another argument too, and one of them takes it away"
            )));
        }
        match transfer {
            HandleTransfer::Own => self.given.push(key),
            HandleTransfer::Borrow => self.lent.push(key),
        }
        Ok(entity.handle)
    }
}

impl Shape {
    /// Returns a hint that lists tools that return entities of a type.
    pub(crate) fn how_to_get(&self, resource: ResourceIndex) -> String {
        let returns_resource = |ty: &WitType| {
            let mut is_found = false;
            ty.visit_resources(&mut |other| is_found |= other == resource);
            is_found
        };
        let names: Vec<_> = self
            .functions
            .iter()
            .filter(|function| function.outcome().0.is_some_and(returns_resource))
            .map(|function| self.tool_in_words(function))
            .take(NAMES_MAX)
            .collect();
        if names.is_empty() {
            "no tool returns one".to_owned()
        } else {
            format!("get one with {}", names.join(" or "))
        }
    }

    /// Returns the name of a tool for the model. The full name of a method depends on the entity, so only its last part is
    /// returned.
    fn tool_in_words(&self, function: &Function) -> String {
        let name = snake_case(&function.name);
        match function.kind {
            FunctionKind::Constructor(index) | FunctionKind::Static(index) => {
                format!("`{}_{name}`", self.resources[index.0].json_name())
            }
            FunctionKind::Method(index) => format!("`{name}` of a `{}`", self.resources[index.0].json_name()),
            FunctionKind::Free | FunctionKind::Command | FunctionKind::Dynamic | FunctionKind::Interceptor => {
                format!("`{name}`")
            }
        }
    }
}
