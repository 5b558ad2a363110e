//! Converts the handles in a result to entities with ids, descriptions and tools.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use wasmtime::component::{ResourceAny, Val};

use futures::future::{BoxFuture, FutureExt};

use super::plugin_entity::{
    Descriptions, EntityToolProvider, bound_tool_names, entity_json, rejected_json, shared_tool_names,
};
use crate::call::entity_table::{EntityTable, LiveEntity};
use crate::call::guarded_call::RunningCall;
use crate::call::instance::Instance;
use crate::call::session::Session;
use crate::call::session_call::{GatheredEntities, ResourceGatherer, ResultHandles};
use crate::values::encode::{FoundHandle, encode};
use crate::values::types::{Resource, ResourceIndex, Shape};
use toolwit_core::limits::{ENTITIES_WITH_OWN_TOOLS_MAX, ENTITY_ID_BYTES_MAX};
use toolwit_core::text::printable;
use toolwit_core::{Error, ErrorKind};
use toolwit_core::{Rebinding, RejectedProvider, ToolProvider};

/// The number of resources at the start of a result for which the description is queried. Later resources of the result
/// have no description.
const DESCRIBED_RESOURCES_MAX: usize = 16;

/// Converts the resources of a session's results to entities.
pub(crate) static ENTITY_GATHERER: EntityGatherer = EntityGatherer;

/// The type of [`ENTITY_GATHERER`].
pub(crate) struct EntityGatherer;

impl ResourceGatherer for EntityGatherer {
    fn gather<'a>(
        &'a self,
        session: &'a Arc<Session>,
        call: &'a RunningCall<'a>,
        instance: &'a mut Instance,
        entities: &'a mut EntityTable,
        result: ResultHandles<'a>,
    ) -> BoxFuture<'a, Result<GatheredEntities, Error>> {
        let gatherer = ResultGatherer { session, call };
        async move { gatherer.gather(instance, entities, result.handles).await }.boxed()
    }
}

/// Converts the resources of one result. Queries the guest about each resource within the remaining limits of the call.
struct ResultGatherer<'a> {
    session: &'a Arc<Session>,
    call: &'a RunningCall<'a>,
}

impl ResultGatherer<'_> {
    /// Registers an entity for each handle. If the method `id` of a handle returns an invalid id, the handle is dropped,
    /// and the result reports the resource as rejected. If the entity is already registered, one of its two handles is
    /// dropped.
    ///
    /// If the method `id` of a resource traps, the plugin instance is lost, and no resource of the result becomes an
    /// entity. [`GatheredEntities::trap`] then contains the trap.
    ///
    /// # Errors
    /// Any other error of the guest. The caller must then drop the instance.
    async fn gather(
        &self,
        instance: &mut Instance,
        entities: &mut EntityTable,
        handles: &[FoundHandle],
    ) -> Result<GatheredEntities, Error> {
        let shape = &self.session.plugin().inspection().shape;
        let mut counts_by_type: HashMap<ResourceIndex, usize> = HashMap::new();
        for handle in handles {
            *counts_by_type.entry(handle.resource).or_default() += 1;
        }
        let mut types_with_listed_tools = HashSet::new();
        let mut gathered = GatheredEntities {
            values: Vec::with_capacity(handles.len()),
            ..GatheredEntities::default()
        };
        for (position, handle) in handles.iter().enumerate() {
            let resource = &shape.resources[handle.resource.0];
            let count = counts_by_type.get(&handle.resource).copied().unwrap_or_default();
            // An entity shares tools if its type has no ids, or if the result has too many entities of its type.
            let shares_tools =
                (resource.id_method.is_none() && !resource.is_chained) || count > ENTITIES_WITH_OWN_TOOLS_MAX;
            let id = match self.identify(instance, entities, resource, handle).await {
                Err(trap) if trap.kind == ErrorKind::Trap => return Ok(reject_all(shape, handles, position, trap)),
                Err(error) => return Err(error),
                Ok(Ok(id)) => id,
                Ok(Err(reason)) => {
                    instance.drop_handle(handle.handle, &self.call.clock).await?;
                    reject(&mut gathered, resource, reason);
                    continue;
                }
            };
            // The description is queried first, because `register` drops this handle if the tools stay bound to an
            // earlier resource.
            let description = self.describe(instance, resource, position, handle.handle).await?;
            let entity = self.register(instance, entities, handle, &id, shares_tools).await?;
            let earlier_description = if entity.handle == handle.handle {
                None
            } else {
                self.describe(instance, resource, position, entity.handle).await?
            };
            let tools = if !entity.shares_tools {
                bound_tool_names(self.session, resource, &id)
            } else if types_with_listed_tools.insert(handle.resource) {
                shared_tool_names(self.session, resource)
            } else {
                // Shared tools are listed once for each type.
                Vec::new()
            };
            gathered.values.push(entity_json(
                resource,
                &id,
                Descriptions {
                    returned: description,
                    earlier: earlier_description,
                },
                &tools,
            ));
            add_provider(
                &mut gathered,
                self.session,
                handle.resource,
                (!entity.shares_tools).then_some(id),
            );
        }
        Ok(gathered)
    }

    /// Queries the id of a resource, or assigns a number if its type has no ids. The inner error is the reason why the
    /// resource cannot become an entity.
    async fn identify(
        &self,
        instance: &mut Instance,
        entities: &mut EntityTable,
        resource: &Resource,
        handle: &FoundHandle,
    ) -> Result<Result<String, String>, Error> {
        let Some(id_method) = resource.id_method else {
            return Ok(Ok(entities.next_number(handle.resource)));
        };
        let returned_id = instance
            .call(
                self.call.component,
                id_method,
                &[Val::Resource(handle.handle)],
                &self.call.clock,
            )
            .await?;
        Ok(match returned_id {
            Some(Val::String(id)) if id.trim().is_empty() => Err("its `id` is empty".to_owned()),
            Some(Val::String(id)) if id.len() > ENTITY_ID_BYTES_MAX => Err(format!(
                "its `id` has {} bytes; at most {ENTITY_ID_BYTES_MAX} are allowed",
                id.len()
            )),
            Some(Val::String(id)) if printable(&id) != id => {
                Err("its `id` contains control or invisible characters".to_owned())
            }
            Some(Val::String(id)) if self.call.authority.redactor.finds_in(&id) => {
                Err("its `id` contains a secret".to_owned())
            }
            Some(Val::String(id)) => Ok(id),
            _ => Err("its `id` is not a string".to_owned()),
        })
    }

    /// Registers an entity. If an entity with this type and id is already live, the `rebinding` of the resource decides
    /// which of the two handles stays, and the other handle is dropped. The `shares_tools` of the live entity then still
    /// applies.
    async fn register(
        &self,
        instance: &mut Instance,
        entities: &mut EntityTable,
        handle: &FoundHandle,
        id: &str,
        mut shares_tools: bool,
    ) -> Result<LiveEntity, Error> {
        let key = (handle.resource, id.to_owned());
        if let Some(live) = entities.get(&key) {
            shares_tools = live.shares_tools;
            let rebinding = self.session.plugin().inspection().shape.resources[handle.resource.0].rebinding;
            let dropped_handle = if rebinding == Rebinding::Keep {
                handle.handle
            } else {
                live.handle
            };
            instance.drop_handle(dropped_handle, &self.call.clock).await?;
            if rebinding == Rebinding::Keep {
                return Ok(live);
            }
        }
        let entity = LiveEntity {
            handle: handle.handle,
            shares_tools,
        };
        entities.insert(key, entity);
        Ok(entity)
    }

    /// Queries the description of a resource at a position in the result. Returns `None` if the position is
    /// [`DESCRIBED_RESOURCES_MAX`] or more, if the type has no method `describe`, or if the description cannot be
    /// encoded.
    async fn describe(
        &self,
        instance: &mut Instance,
        resource: &Resource,
        position: usize,
        handle: ResourceAny,
    ) -> Result<Option<Value>, Error> {
        let Some(describe) = resource.describe_method.filter(|_| position < DESCRIBED_RESOURCES_MAX) else {
            return Ok(None);
        };
        let shape = &self.session.plugin().inspection().shape;
        let description = instance
            .call(
                self.call.component,
                describe,
                &[Val::Resource(handle)],
                &self.call.clock,
            )
            .await?;
        let ty = shape.functions[describe].result.as_ref();
        Ok(ty
            .zip(description)
            .and_then(|(ty, value)| encode(ty, value, &mut std::iter::empty()).ok()))
    }
}

/// Rejects all resources of a result, because the method `id` of the resource at `trapped_position` trapped.
fn reject_all(shape: &Shape, handles: &[FoundHandle], trapped_position: usize, trap: Error) -> GatheredEntities {
    let mut gathered = GatheredEntities::default();
    for (position, handle) in handles.iter().enumerate() {
        let reason = if position == trapped_position {
            format!("its `id` failed: {}", trap.message)
        } else {
            "it was dropped, because the `id` of another entity failed".to_owned()
        };
        reject(&mut gathered, &shape.resources[handle.resource.0], reason);
    }
    gathered.trap = Some(trap);
    gathered
}

/// Adds a resource that cannot become an entity. Its JSON contains the reason.
fn reject(gathered: &mut GatheredEntities, resource: &Resource, reason: String) {
    gathered.values.push(rejected_json(resource, &reason));
    gathered
        .rejected
        .push(RejectedProvider::new(resource.json_name(), reason));
}

/// Adds the provider of an entity's tools, or of the tools that the entities of a type share if `id` is `None`. Does
/// nothing if this provider has already been added.
fn add_provider(gathered: &mut GatheredEntities, session: &Arc<Session>, resource: ResourceIndex, id: Option<String>) {
    let provider = EntityToolProvider::new(session.clone(), resource, id);
    let is_same = |other: &Arc<dyn ToolProvider>| {
        other.prefix() == provider.prefix()
            && other.namespace() == provider.namespace()
            && other.instance_id() == provider.instance_id()
    };
    if !gathered.providers.iter().any(is_same) {
        gathered.providers.push(Arc::new(provider));
    }
}
