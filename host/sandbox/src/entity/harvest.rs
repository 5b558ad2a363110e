//! After a call: from the handles in its result to entities with ids, descriptions and tools.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use wasmtime::component::Val;

use super::entity::{
    EntityTable, ID_BYTES_MAX, LiveEntity, PluginEntity, bound_tool_names, entity_json, invalid_json, shared_tool_names,
};
use crate::call::instance::{CallClock, Instance};
use crate::call::session::Session;
use crate::link::linked::Linked;
use crate::values::encode::{FoundHandle, encode};
use crate::values::types::{Resource, ResourceIndex, Shape};
use toolwit_core::Error;
use toolwit_core::text::printable;
use toolwit_core::{Rebinding, ToolProvider};

/// Entities of one type in one result that get tools of their own; more of them share one set.
const ENTITIES_PER_RESULT_MAX: usize = 16;

/// Entities of one result that are asked to describe themselves.
const DESCRIBED_MAX: usize = 16;

/// What the handles of a result became.
pub(crate) struct Gathered {
    /// What stands for each handle, in the order in which they were found.
    pub(crate) values: Vec<Value>,
    /// Who brings tools into the conversation.
    pub(crate) providers: Vec<Arc<dyn ToolProvider>>,
}

/// Asks the guest about the resources that it just gave. All of it draws on what is left of the call's bounds.
pub(crate) struct Harvest<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) linked: &'a Linked,
    pub(crate) clock: &'a CallClock<'a>,
    /// How many entities lie between the new ones and a tool that was there from the start.
    pub(crate) depth: u32,
}

impl Harvest<'_> {
    /// Registers every handle. An entity that was there keeps its instance, and the new handle is dropped.
    ///
    /// # Errors
    /// Whatever ended the guest while it was asked; its instance is lost then.
    pub(crate) async fn gather(
        &self,
        instance: &mut Instance,
        entities: &mut EntityTable,
        found: &[FoundHandle],
    ) -> Result<Gathered, Error> {
        let shape = &self.session.plugin().inspection().shape;
        let mut counts: HashMap<ResourceIndex, usize> = HashMap::new();
        for handle in found {
            *counts.entry(handle.resource).or_default() += 1;
        }
        let mut told = HashSet::new();
        let mut gathered = Gathered {
            values: Vec::with_capacity(found.len()),
            providers: Vec::new(),
        };
        for (at, handle) in found.iter().enumerate() {
            let resource = &shape.resources[handle.resource.0];
            let count = counts.get(&handle.resource).copied().unwrap_or_default();
            let is_shared = (resource.id.is_none() && !resource.chained) || count > ENTITIES_PER_RESULT_MAX;
            let id = match self.identify(instance, entities, resource, handle).await? {
                Ok(id) => id,
                Err(reason) => {
                    instance.drop_handle(handle.handle, self.clock).await?;
                    gathered.values.push(invalid_json(resource, &reason));
                    continue;
                }
            };
            let kept = self.keep(instance, entities, handle, &id).await?;
            let description = if at < DESCRIBED_MAX {
                self.describe(instance, shape, resource, kept).await?
            } else {
                None
            };
            let tools = match is_shared {
                // Told once for each type: it is the same for all of them.
                true if told.insert(handle.resource) => shared_tool_names(self.session, resource),
                true => Vec::new(),
                false => bound_tool_names(self.session, resource, &id),
            };
            gathered.values.push(entity_json(resource, &id, description, &tools));
            gathered.provide(self.session, handle.resource, (!is_shared).then_some(id), kept.depth);
        }
        Ok(gathered)
    }

    /// Asks a resource for its id, or counts it. The inner error says why it cannot be an entity.
    async fn identify(
        &self,
        instance: &mut Instance,
        entities: &mut EntityTable,
        resource: &Resource,
        handle: &FoundHandle,
    ) -> Result<Result<String, String>, Error> {
        let Some(id) = resource.id else {
            return Ok(Ok(entities.next_number(handle.resource)));
        };
        let answer = instance
            .call(self.linked, id, &[Val::Resource(handle.handle)], self.clock)
            .await?;
        Ok(match answer {
            Some(Val::String(id)) if id.trim().is_empty() => Err("its `id` is empty".to_owned()),
            Some(Val::String(id)) if id.len() > ID_BYTES_MAX => Err(format!(
                "its `id` has {} bytes; at most {ID_BYTES_MAX} are allowed",
                id.len()
            )),
            Some(Val::String(id)) if printable(&id) != id => Err("its `id` holds control characters".to_owned()),
            Some(Val::String(id)) => Ok(id),
            _ => Err("its `id` is no text".to_owned()),
        })
    }

    /// Keeps the entity that is live under this id, else the new one.
    async fn keep(
        &self,
        instance: &mut Instance,
        entities: &mut EntityTable,
        handle: &FoundHandle,
        id: &str,
    ) -> Result<LiveEntity, Error> {
        let key = (handle.resource, id.to_owned());
        if let Some(live) = entities.get(&key) {
            let rebinding = self.session.plugin().inspection().shape.resources[handle.resource.0].rebinding;
            let old = if rebinding == Rebinding::Keep {
                handle.handle
            } else {
                live.handle
            };
            instance.drop_handle(old, self.clock).await?;
            if rebinding == Rebinding::Keep {
                return Ok(live);
            }
        }
        let entity = LiveEntity {
            handle: handle.handle,
            depth: self.depth,
        };
        entities.insert(key, entity);
        Ok(entity)
    }

    async fn describe(
        &self,
        instance: &mut Instance,
        shape: &Shape,
        resource: &Resource,
        entity: LiveEntity,
    ) -> Result<Option<Value>, Error> {
        let Some(describe) = resource.describe else {
            return Ok(None);
        };
        let answer = instance
            .call(self.linked, describe, &[Val::Resource(entity.handle)], self.clock)
            .await?;
        let ty = shape.functions[describe].result.as_ref();
        Ok(ty
            .zip(answer)
            .and_then(|(ty, value)| encode(ty, value, &mut std::iter::empty()).ok()))
    }
}

impl Gathered {
    /// Adds a provider, one for all entities of a type where they share their tools.
    fn provide(&mut self, session: &Arc<Session>, resource: ResourceIndex, id: Option<String>, depth: u32) {
        let provider = PluginEntity::new(session.clone(), resource, id, depth);
        let is_there = |other: &Arc<dyn ToolProvider>| {
            other.prefix() == provider.prefix()
                && other.namespace() == provider.namespace()
                && other.instance_id() == provider.instance_id()
        };
        if !self.providers.iter().any(is_there) {
            self.providers.push(Arc::new(provider));
        }
    }
}
