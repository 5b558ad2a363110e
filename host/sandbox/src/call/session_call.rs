//! Calls in a session instance, which keeps resources between calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::MutexGuard;
use wasmtime::component::Val;

use super::entity_table::{EntityKey, EntityResolver, EntityTable};
use super::function::invalid_arguments;
use super::guarded_call::{GuardedCall, GuestWork, RunningCall};
use super::instance::Instance;
use super::session::{Session, SessionState};
use super::tool_result::tool_result;
use crate::grants::authority::Authority;
use crate::inspect::inspection::id_parameter;
use crate::link::host::host_api::CallStack;
use crate::link::host::wasi_context::Stdio;
use crate::values::decode::decode_arguments;
use crate::values::encode::{FoundHandle, find_handles};
use crate::values::types::{ResourceIndex, Shape};
use toolwit_core::limits::CallLimits;
use toolwit_core::text::snake_case;
use toolwit_core::{Arguments, RejectedProvider, ToolProvider, ToolResult};
use toolwit_core::{Error, ErrorKind, Phase};

/// The entity on which a function is called.
#[derive(Clone, Debug)]
pub(crate) enum EntityTarget {
    /// No entity, for a free function, a constructor or a static function.
    None,
    /// Always the same entity.
    Entity(EntityKey),
    /// The entity of this type whose id is in the arguments of the call.
    ByParameter(ResourceIndex),
}

/// Converts the resources of a result to entities. The module `entity` implements this trait.
pub(crate) trait ResourceGatherer: Send + Sync {
    /// Registers an entity for every handle, and returns the JSON and the tools of the entities.
    ///
    /// # Errors
    /// The error of the guest's methods `id` and `describe` and of destructors. A trap of `id` is not an error: it is returned in
    /// [`GatheredEntities::trap`].
    fn gather<'a>(
        &'a self,
        session: &'a Arc<Session>,
        call: &'a RunningCall<'a>,
        instance: &'a mut Instance,
        entities: &'a mut EntityTable,
        result: ResultHandles<'a>,
    ) -> BoxFuture<'a, Result<GatheredEntities, Error>>;
}

/// The resource handles in a result.
#[derive(Clone, Copy)]
pub(crate) struct ResultHandles<'a> {
    pub(crate) handles: &'a [FoundHandle],
}

/// The entities of a result.
#[derive(Default)]
pub(crate) struct GatheredEntities {
    /// The JSON that replaces each handle in the result, in the order of the handles.
    pub(crate) values: Vec<Value>,
    /// The providers of the entities' tools.
    pub(crate) providers: Vec<Arc<dyn ToolProvider>>,
    /// The resources that cannot become entities.
    pub(crate) rejected: Vec<RejectedProvider>,
    /// The trap of the guest's method `id`. The result remains valid, but the instance must be dropped with all its entities.
    pub(crate) trap: Option<Error>,
}

/// A call of a function in the instance of a session. Creates the instance if it does not exist.
pub(crate) struct SessionCall<'a> {
    session: &'a Arc<Session>,
    /// The index of the function in the shape.
    function_index: usize,
    target: &'a EntityTarget,
    arguments: Arguments,
    /// The decoded arguments. If there is a target, its handle comes first. Empty until the arguments are decoded.
    params: Vec<Val>,
    /// The key of the entity on which the function is called. `None` if there is no such entity, and before the arguments are
    /// checked.
    target_key: Option<EntityKey>,
    /// The entities that the call takes ownership of.
    owned_entities: Vec<EntityKey>,
    /// The trap of the guest's method `id`, which the host calls after the function. See [`GatheredEntities::trap`].
    trap: Option<Error>,
    // Declared before `state`, so that the guard is dropped before the lock is released.
    alive_guard: Option<AliveGuard<'a>>,
    /// The state of the session, which is locked until the call has ended. `None` until the call has entered the session.
    state: Option<MutexGuard<'a, SessionState>>,
}

impl<'a> SessionCall<'a> {
    pub(crate) fn new(
        session: &'a Arc<Session>,
        function_index: usize,
        target: &'a EntityTarget,
        arguments: Arguments,
    ) -> Self {
        Self {
            session,
            function_index,
            target,
            arguments,
            params: Vec::new(),
            target_key: None,
            owned_entities: Vec::new(),
            trap: None,
            alive_guard: None,
            state: None,
        }
    }

    fn shape(&self) -> &'a Shape {
        &self.session.plugin().inspection().shape
    }

    /// Returns the key of the entity on which the function is called. If an argument contains the id of the entity, removes the
    /// argument.
    fn take_target_key(&mut self) -> Result<Option<EntityKey>, Error> {
        match self.target {
            EntityTarget::None => Ok(None),
            EntityTarget::Entity(key) => Ok(Some(key.clone())),
            EntityTarget::ByParameter(index) => {
                let shape = self.shape();
                let name = id_parameter(&shape.functions[self.function_index], &shape.resources[index.0]);
                match self.arguments.shift_remove(&name) {
                    Some(Value::String(id)) => Ok(Some((*index, id))),
                    Some(_) => Err(invalid_argument(format!(
                        "/{name}: expected the id of an entity, a string"
                    ))),
                    None => Err(invalid_argument(format!("the property `{name}` is missing"))),
                }
            }
        }
    }

    /// Decodes the arguments with the entities of the locked session. Keeps the lock until the call has ended.
    fn decode_with_lock(&mut self, mut state: MutexGuard<'a, SessionState>) -> Result<(), Error> {
        state.remove_abandoned_entities();
        self.session.drop_if_replaced(&mut state);
        if self.shape().keeps_state
            && let Some(reason) = state.take_drop_reason()
        {
            return Err(state_gone(&reason));
        }
        self.decode(&state.entities)?;
        self.state = Some(state);
        Ok(())
    }

    /// Decodes the arguments to `params`. If there is a target, its handle comes first.
    fn decode(&mut self, entities: &EntityTable) -> Result<(), Error> {
        let shape = self.shape();
        self.params.clear();
        if let Some(key) = &self.target_key {
            let entity = entities.get(key).ok_or_else(|| match self.target {
                EntityTarget::ByParameter(index) if entities.removal_reason(key).is_none() => {
                    let name = id_parameter(&shape.functions[self.function_index], &shape.resources[index.0]);
                    invalid_argument(format!("/{name}: {}", entities.missing_message(shape, key)))
                }
                _ => entity_gone(shape, key, entities),
            })?;
            self.params.push(Val::Resource(entity.handle));
        }
        let mut resolver = EntityResolver::new(entities, shape);
        let params = decode_arguments(
            &shape.functions[self.function_index].params,
            &self.arguments,
            &mut resolver,
        );
        self.params.extend(params.map_err(invalid_arguments)?);
        self.owned_entities = resolver.owned_entities;
        if let Some(target) = self.target_key.as_ref().filter(|key| self.owned_entities.contains(key)) {
            let (_, id) = target;
            return Err(invalid_argument(format!(
                "the entity `{id}` cannot be given away in a call of its own method"
            )));
        }
        Ok(())
    }
}

impl GuestWork for SessionCall<'_> {
    fn check(&mut self, call: &GuardedCall<'_>) -> Result<(), Error> {
        CallStack::require_not_reentrant(call.context, self.session.number())?;
        self.target_key = self.take_target_key()?;
        // If an earlier call is still using the session, `enter` decodes the arguments instead. The earlier call may create the
        // entities that the arguments refer to.
        if let Some(state) = self.session.try_enter() {
            self.decode_with_lock(state)?;
        }
        Ok(())
    }

    fn check_authority(&self, authority: &Authority) -> Result<(), Error> {
        // The session instance has all rights of its plugin, so a caller with fewer rights must not use it.
        authority.require_full_rights()
    }

    async fn enter(
        &mut self,
        call: &GuardedCall<'_>,
        authority: &Authority,
        limits: &CallLimits,
    ) -> Result<Duration, Error> {
        let mut waiting_time = Duration::ZERO;
        if self.state.is_none() {
            let (state, session_waiting_time) = self.session.enter(call.context, limits).await?;
            waiting_time = session_waiting_time;
            self.decode_with_lock(state)?;
        }
        let is_outdated = self
            .state
            .as_mut()
            .is_some_and(|state| state.drop_outdated_instance(authority));
        if is_outdated && let Some(state) = self.state.take() {
            self.session.is_alive.store(false, Ordering::Relaxed);
            // Decoding fails now if the arguments contain the id of an entity, because the entities were dropped with the instance.
            self.decode_with_lock(state)?;
        }
        Ok(waiting_time)
    }

    async fn instance(&mut self, call: &RunningCall<'_>) -> Result<Instance, Error> {
        self.alive_guard = Some(AliveGuard::new(&self.session.is_alive));
        if let Some(mut instance) = self.state.as_mut().and_then(|state| state.instance.take()) {
            instance.start_call(&call.clock, call.authority)?;
            return Ok(instance);
        }
        call.plugin.runtime().session_limits.make_room_for(self.session);
        // Boxed, because this future runs once per session and would enlarge the future of every call.
        let mut instance = Box::pin(call.fresh_instance(Stdio::Log)).await?;
        instance.set_session(self.session.number());
        Ok(instance)
    }

    async fn run(&mut self, instance: &mut Instance, call: &RunningCall<'_>) -> Result<ToolResult, Error> {
        let value = instance
            .call(call.component, self.function_index, &self.params, &call.clock)
            .await?;
        let function = &self.shape().functions[self.function_index];
        let Some(state) = self.state.as_deref_mut() else {
            return Err(Error::new(
                ErrorKind::Internal,
                Phase::Execute,
                "the session was not entered",
            ));
        };
        let entities = &mut state.entities;
        if !self.owned_entities.is_empty() {
            let reason = format!("it was given to `{}`", snake_case(&function.name)).into();
            self.owned_entities.iter().for_each(|key| entities.remove(key, &reason));
        }
        let mut handles = Vec::new();
        if let (Some(ty), Some(value)) = (&function.result, &value) {
            find_handles(ty, value, &mut handles);
        }
        if handles.is_empty() {
            return tool_result(function, value, &mut std::iter::empty(), call.clock.limits);
        }
        let result_handles = ResultHandles { handles: &handles };
        let gatherer = self.session.gatherer;
        let result_entities = gatherer
            .gather(self.session, call, instance, entities, result_handles)
            .await?;
        let mut entity_values = result_entities.values.into_iter();
        let mut result = tool_result(function, value, &mut entity_values, call.clock.limits)?;
        result.providers = result_entities.providers;
        result.rejected = result_entities.rejected;
        self.trap = result_entities.trap;
        Ok(result)
    }

    fn return_instance(&mut self, instance: Instance) -> Option<Instance> {
        if let Some(trap) = self.trap.take() {
            drop(instance);
            self.handle_dropped_instance(&trap);
            return None;
        }
        match (self.state.as_mut(), self.alive_guard.take()) {
            (Some(state), Some(alive_guard)) => {
                state.keep_instance(instance);
                alive_guard.keep();
                None
            }
            _ => Some(instance),
        }
    }

    fn handle_dropped_instance(&mut self, error: &Error) {
        if let Some(state) = &mut self.state {
            state.drop_instance(&error.message);
        }
    }
}

/// Sets the flag `is_alive` of a [`Session`] while a call runs. The destructor of the guard clears the flag, because the future of
/// the call may be dropped at any await point.
struct AliveGuard<'a>(Option<&'a AtomicBool>);

impl<'a> AliveGuard<'a> {
    fn new(flag: &'a AtomicBool) -> Self {
        flag.store(true, Ordering::Relaxed);
        Self(Some(flag))
    }

    /// Leaves the flag set after the call, because the session keeps its instance.
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for AliveGuard<'_> {
    fn drop(&mut self) {
        if let Some(flag) = self.0 {
            flag.store(false, Ordering::Relaxed);
        }
    }
}

/// Creates the error for a call of a method whose entity no longer exists.
fn entity_gone(shape: &Shape, key: &EntityKey, entities: &EntityTable) -> Error {
    let (index, id) = key;
    let name = shape.resources[index.0].json_name();
    let message = match entities.removal_reason(key) {
        Some(reason) => format!("the {name} `{id}` is gone: {reason}"),
        None => format!("the {name} `{id}` is gone"),
    };
    Error::new(ErrorKind::EntityGone, Phase::Execute, message).with_suggestion(shape.entity_hint(*index))
}

/// Creates the error for the first call after the state of a plugin was lost.
fn state_gone(reason: &str) -> Error {
    let message = format!("what earlier calls kept in the plugin is gone: {reason}");
    Error::new(ErrorKind::EntityGone, Phase::Execute, message)
        .with_suggestion("call again to begin with fresh state; what is still needed must be entered again")
}

fn invalid_argument(message: String) -> Error {
    Error::new(ErrorKind::InvalidArguments, Phase::Validate, message)
}
