//! The entities of a session: the live entities by type and id, and the reasons why earlier entities were removed.

use std::collections::HashMap;
use std::sync::Arc;

use wasmtime::component::ResourceAny;

use crate::values::decode::{DecodeError, HandleTransfer, ResolveHandle, quoted};
use crate::values::types::{Function, FunctionKind, ResourceIndex, Shape, WitType};
use toolwit_core::text::snake_case;

/// The identity of an entity within its session: its type and its id.
pub(crate) type EntityKey = (ResourceIndex, String);

/// A live entity of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveEntity {
    pub(crate) handle: ResourceAny,
    /// Whether the entity shares its tools with the other entities of its type. Decided by the first result that contains the
    /// entity.
    pub(crate) shares_tools: bool,
}

/// The maximum number of removed entities for which a session stores the reason.
const REMOVAL_REASONS_MAX: usize = 4_096;

/// The maximum number of tools in a hint.
const TOOLS_IN_HINT_MAX: usize = 4;

/// The entities of one session, by type and id.
#[derive(Debug, Default)]
pub(crate) struct EntityTable {
    live: HashMap<EntityKey, LiveEntity>,
    /// The reasons why entities were removed.
    removal_reasons: HashMap<EntityKey, Arc<str>>,
    /// For each resource type without ids, the last number that was assigned to a resource of the type.
    last_numbers: HashMap<ResourceIndex, u64>,
}

impl EntityTable {
    pub(crate) fn get(&self, key: &EntityKey) -> Option<LiveEntity> {
        self.live.get(key).copied()
    }

    /// Inserts an entity. Returns the entity that it replaces.
    pub(crate) fn insert(&mut self, key: EntityKey, entity: LiveEntity) -> Option<LiveEntity> {
        self.removal_reasons.remove(&key);
        self.live.insert(key, entity)
    }

    /// Removes an entity and stores the reason. Does nothing if the entity is not live.
    pub(crate) fn remove(&mut self, key: &EntityKey, reason: &Arc<str>) {
        if self.live.remove(key).is_some() {
            self.record_removal(key.clone(), reason);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Removes all entities, and stores the reason. The numbering continues, so that no number is assigned to two entities.
    pub(crate) fn clear(&mut self, reason: &Arc<str>) {
        for (key, _) in std::mem::take(&mut self.live) {
            self.record_removal(key, reason);
        }
    }

    /// Returns the reason why an entity was removed. Returns `None` if the entity is live or never existed, or if it was
    /// removed after the session had stored [`REMOVAL_REASONS_MAX`] reasons.
    pub(crate) fn removal_reason(&self, key: &EntityKey) -> Option<&str> {
        self.removal_reasons.get(key).map(|reason| &**reason)
    }

    fn record_removal(&mut self, key: EntityKey, reason: &Arc<str>) {
        if self.removal_reasons.len() < REMOVAL_REASONS_MAX {
            self.removal_reasons.insert(key, reason.clone());
        }
    }

    /// Returns the next number for a type whose resources have no id. The number is the id of the entity.
    pub(crate) fn next_number(&mut self, resource: ResourceIndex) -> String {
        let number = self.last_numbers.entry(resource).or_default();
        *number += 1;
        number.to_string()
    }

    /// Returns the error message for an id that has no live entity. The message contains the reason if the entity was removed, and
    /// the tools that return entities of its type.
    pub(crate) fn missing_message(&self, shape: &Shape, key: &EntityKey) -> String {
        let (resource, id) = key;
        let name = shape.resources[resource.0].json_name();
        let hint = shape.entity_hint(*resource);
        match self.removal_reason(key) {
            Some(reason) => format!("the `{name}` with the id `{id}` is gone: {reason}; {hint}"),
            None => format!("there is no `{name}` with the id {}; {hint}", quoted(id)),
        }
    }
}

/// Resolves the ids in the arguments of a call to handles. Records the entities that the call takes ownership of or borrows.
pub(crate) struct EntityResolver<'a> {
    entities: &'a EntityTable,
    shape: &'a Shape,
    /// The entities that the call takes ownership of.
    pub(crate) owned_entities: Vec<EntityKey>,
    borrowed_entities: Vec<EntityKey>,
}

impl<'a> EntityResolver<'a> {
    pub(crate) fn new(entities: &'a EntityTable, shape: &'a Shape) -> Self {
        Self {
            entities,
            shape,
            owned_entities: Vec::new(),
            borrowed_entities: Vec::new(),
        }
    }
}

impl ResolveHandle for EntityResolver<'_> {
    fn resolve(
        &mut self,
        resource: ResourceIndex,
        id: &str,
        transfer: HandleTransfer,
    ) -> Result<ResourceAny, DecodeError> {
        let key = (resource, id.to_owned());
        let Some(entity) = self.entities.get(&key) else {
            return Err(DecodeError::new(self.entities.missing_message(self.shape, &key)));
        };
        let has_conflict = match transfer {
            HandleTransfer::Own => self.owned_entities.contains(&key) || self.borrowed_entities.contains(&key),
            HandleTransfer::Borrow => self.owned_entities.contains(&key),
        };
        if has_conflict {
            return Err(DecodeError::new(format!(
                "the entity `{id}` is also in another argument, and one of them takes ownership of it"
            )));
        }
        match transfer {
            HandleTransfer::Own => self.owned_entities.push(key),
            HandleTransfer::Borrow => self.borrowed_entities.push(key),
        }
        Ok(entity.handle)
    }
}

impl Shape {
    /// Returns a hint for the model that names the first tools that return an entity of a type. If no tool returns one, the hint
    /// states this.
    pub(crate) fn entity_hint(&self, resource: ResourceIndex) -> String {
        let returns_resource = |ty: &WitType| {
            let mut is_found = false;
            ty.visit_resources(&mut |visited| is_found |= visited == resource);
            is_found
        };
        let tools: Vec<_> = self
            .functions
            .iter()
            .filter(|function| function.outcome_types().0.is_some_and(returns_resource))
            .map(|function| self.describe_tool(function))
            .take(TOOLS_IN_HINT_MAX)
            .collect();
        if tools.is_empty() {
            "no tool returns one".to_owned()
        } else {
            format!("get one with {}", tools.join(" or "))
        }
    }

    /// Returns a text that identifies the tool of a function for the model. For a method, the text contains the method and its
    /// resource type, because the name of the tool depends on the entity.
    fn describe_tool(&self, function: &Function) -> String {
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
