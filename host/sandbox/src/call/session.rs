//! The session instance: where the resources of a conversation live.
//!
//! A plugin that hands out resources has one instance for each conversation, so that handles of different calls meet. Calls
//! go in one after the other. While a call runs, the instance is taken out of the session; only a call that ended well
//! puts it back, so that an instance which trapped, was stopped or was abandoned is never entered again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;
use wasmtime::component::Val;
use zeroize::Zeroizing;

use super::answer::{answer, bounded_artifacts};
use super::instance::{CallClock, Instance};
use super::scope::Confines;
use super::tool::invalid;
use crate::entity::entity::{EntityKey, EntityTable, Handles};
use crate::entity::harvest::Harvest;
use crate::grants::authority::{Authority, ConversationNumber, OpenedRights};
use crate::inspect::inspection::id_parameter;
use crate::link::host_api::CallStack;
use crate::link::link_once::cancelled_before;
use crate::link::wasi::Stdio;
use crate::plugin::Plugin;
use crate::values::decode::decode_arguments;
use crate::values::encode::find_handles;
use crate::values::types::ResourceIndex;
use toolwit_core::limits::CallLimits;
use toolwit_core::text::snake_case;
use toolwit_core::{Arguments, ToolContext, ToolResult};
use toolwit_core::{Error, ErrorKind, Phase};

/// Which entity a call is about.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// None: a function, a constructor, a static function.
    None,
    /// This one.
    Entity(EntityKey),
    /// The one that an argument names.
    ByParameter(ResourceIndex),
}

/// One plugin's instance in one conversation.
pub(crate) struct Session {
    number: u64,
    confines: Confines,
    plugin: Arc<Plugin>,
    state: Mutex<State>,
    is_alive: AtomicBool,
    last_used: AtomicU64,
}

#[derive(Default)]
struct State {
    instance: Option<Instance>,
    entities: EntityTable,
    /// What was granted when the instance was last called.
    granted: Option<Arc<OpenedRights>>,
    /// The values that the instance was made with: a guest reads its environment once.
    variables: Vec<(String, Zeroizing<String>)>,
}

impl Session {
    pub(crate) fn new(plugin: Arc<Plugin>, confines: Confines) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            confines,
            plugin,
            state: Mutex::default(),
            is_alive: AtomicBool::new(false),
            last_used: AtomicU64::new(0),
        }
    }

    /// Tells it from the other sessions of the process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn conversation(&self) -> ConversationNumber {
        self.confines.conversation()
    }

    pub(crate) fn confines(&self) -> &Confines {
        &self.confines
    }

    pub(crate) fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Relaxed)
    }

    /// A stamp that grows with every use of any session.
    pub(crate) fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    /// Drops the instance unless a call is using it. Returns whether it is gone.
    pub(crate) fn evict(&self) -> bool {
        let Ok(mut state) = self.state.try_lock() else {
            return false;
        };
        state.lose("the host had to make room for other conversations");
        self.is_alive.store(false, Ordering::Relaxed);
        true
    }

    /// Calls a function of the session's instance, and makes the instance when there is none.
    pub(crate) async fn call(
        self: &Arc<Self>,
        function: usize,
        target: &Target,
        mut arguments: Arguments,
        context: &ToolContext,
        authority: &Authority,
    ) -> Result<ToolResult, Error> {
        let limits = self.plugin.limits_for(context)?;
        CallStack::require_outside(context, self.number)?;
        authority.require_full_rights()?;
        let linked = self.plugin.linked(context).await?;
        let (mut state, waited) = self.enter(context, &limits).await?;
        state.notice_abandoned();
        if state.notice_grants(&authority.rights) || state.notice_variables(authority) {
            self.is_alive.store(false, Ordering::Relaxed);
        }
        let key = self.target_key(function, target, &mut arguments)?;
        let (params, given) = self.decode(&state, function, target, key.as_ref(), &arguments)?;
        let place = self.plugin.place(context, &limits).await?;
        let _running = self.plugin.runtime().engines.ticker.run();
        let clock = CallClock::start(&limits, context);
        let alive = Alive::until_dropped(&self.is_alive);
        let mut instance = match state.instance.take() {
            Some(mut instance) => {
                instance.start_call(&clock, authority)?;
                instance
            }
            None => {
                self.plugin.runtime().sessions.admit(self);
                let network = &self.plugin.runtime().network;
                // Apart: it would make the future of every call larger.
                let made = Box::pin(Instance::new(&linked, &clock, Stdio::Log, authority, network));
                let mut instance = made.await?;
                instance.belong_to(self.number);
                instance
            }
        };
        let depth = key.and_then(|key| state.entities.get(&key)).map_or(0, |own| own.depth) + 1;
        let harvest = Harvest {
            session: self,
            linked: &linked,
            clock: &clock,
            depth,
        };
        let entities = &mut state.entities;
        let mut outcome = self
            .run(harvest, &mut instance, entities, function, &params, &given)
            .await;
        let log = instance.take_log();
        if let Ok(result) = &mut outcome {
            let mut usage = instance.usage(&clock);
            usage.queued = waited + place.queued;
            result.usage = Some(usage);
            result.log = log;
            result.artifacts.extend(instance.take_artifacts());
        }
        instance.end_call();
        outcome = outcome.and_then(|result| bounded_artifacts(&result, &limits).map(|()| result));
        match &outcome {
            Err(error) if error.kind != ErrorKind::ResultBytes => state.lose(&error.message),
            // A result that is too large harms nobody but its caller.
            _ => {
                state.instance = Some(instance);
                alive.keep();
            }
        }
        outcome
    }

    /// Runs the function, and turns what it gave into what the tool answers, entities and their tools included.
    async fn run(
        &self,
        harvest: Harvest<'_>,
        instance: &mut Instance,
        entities: &mut EntityTable,
        function: usize,
        params: &[Val],
        given: &[EntityKey],
    ) -> Result<ToolResult, Error> {
        let value = instance.call(harvest.linked, function, params, harvest.clock).await?;
        let function = &self.plugin.inspection().shape.functions[function];
        if !given.is_empty() {
            let why = format!("it was given to `{}`", snake_case(&function.name)).into();
            given.iter().for_each(|key| entities.remove(key, &why));
        }
        let mut found = Vec::new();
        if let (Some(ty), Some(value)) = (&function.result, &value) {
            find_handles(ty, value, &mut found);
        }
        if found.is_empty() {
            return answer(function, value, &mut std::iter::empty(), harvest.clock.limits);
        }
        // Apart, as above.
        let gathered = Box::pin(harvest.gather(instance, entities, &found)).await?;
        let mut result = answer(function, value, &mut gathered.values.into_iter(), harvest.clock.limits)?;
        result.providers = gathered.providers;
        Ok(result)
    }

    /// Waits for the calls before this one. Returns how long that took, too.
    async fn enter(
        &self,
        context: &ToolContext,
        limits: &CallLimits,
    ) -> Result<(MutexGuard<'_, State>, Duration), Error> {
        static CLOCK: AtomicU64 = AtomicU64::new(1);
        self.last_used
            .store(CLOCK.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        if let Ok(state) = self.state.try_lock() {
            return Ok((state, Duration::ZERO));
        }
        let waiting = Instant::now();
        let state = Box::pin(self.enter_in_turn(context, limits)).await?;
        Ok((state, waiting.elapsed()))
    }

    async fn enter_in_turn(&self, context: &ToolContext, limits: &CallLimits) -> Result<MutexGuard<'_, State>, Error> {
        tokio::select! {
            biased;
            () = context.cancel().cancelled() => Err(cancelled_before()),
            state = self.state.lock() => Ok(state),
            () = tokio::time::sleep(limits.wall_max) => {
                Err(Error::new(ErrorKind::Busy, Phase::Execute, "an earlier call in the same session is still running")
                    .with_suggestion("call again when it has ended"))
            }
        }
    }

    /// Finds out which entity is meant; for the shared form, the argument that names it is taken out.
    fn target_key(
        &self,
        function: usize,
        target: &Target,
        arguments: &mut Arguments,
    ) -> Result<Option<EntityKey>, Error> {
        match target {
            Target::None => Ok(None),
            Target::Entity(key) => Ok(Some(key.clone())),
            Target::ByParameter(index) => {
                let shape = &self.plugin.inspection().shape;
                let name = id_parameter(&shape.functions[function], &shape.resources[index.0]);
                match arguments.shift_remove(&name) {
                    Some(Value::String(id)) => Ok(Some((*index, id))),
                    Some(_) => Err(bad_arguments(format!(
                        "/{name}: expected the id of an entity, a string"
                    ))),
                    None => Err(bad_arguments(format!("the property `{name}` is missing"))),
                }
            }
        }
    }

    /// Decodes the arguments, `self` first. Returns the entities that the call takes for itself, too.
    fn decode(
        &self,
        state: &State,
        function: usize,
        target: &Target,
        key: Option<&EntityKey>,
        arguments: &Arguments,
    ) -> Result<(Vec<Val>, Vec<EntityKey>), Error> {
        let shape = &self.plugin.inspection().shape;
        let mut params = Vec::new();
        if let Some(key) = key {
            let entity = state.entities.get(key).ok_or_else(|| match target {
                Target::ByParameter(index) if state.entities.why_gone(key).is_none() => {
                    let name = id_parameter(&shape.functions[function], &shape.resources[index.0]);
                    bad_arguments(format!("/{name}: {}", state.entities.not_there(shape, key)))
                }
                _ => self.gone(key, state),
            })?;
            params.push(Val::Resource(entity.handle));
        }
        let mut handles = Handles {
            entities: &state.entities,
            shape,
            given: Vec::new(),
            lent: Vec::new(),
        };
        params.extend(decode_arguments(&shape.functions[function].params, arguments, &mut handles).map_err(invalid)?);
        if let Some(own) = key.filter(|key| handles.given.contains(key)) {
            return Err(bad_arguments(format!(
                "the entity `{}` cannot be given away in a call of its own method",
                own.1
            )));
        }
        Ok((params, handles.given))
    }

    /// Says why the entity behind a tool does not answer.
    fn gone(&self, key: &EntityKey, state: &State) -> Error {
        let (index, id) = key;
        let shape = &self.plugin.inspection().shape;
        let name = shape.resources[index.0].json_name();
        let message = match state.entities.why_gone(key) {
            Some(why) => format!("the {name} `{id}` is gone: {why}"),
            None => format!("the {name} `{id}` is gone"),
        };
        Error::new(ErrorKind::EntityGone, Phase::Execute, message).with_suggestion(shape.how_to_get(*index))
    }
}

/// Says that a session has an instance, until it is dropped: the call may end at any point at which it waits.
struct Alive<'a>(Option<&'a AtomicBool>);

impl<'a> Alive<'a> {
    fn until_dropped(flag: &'a AtomicBool) -> Self {
        flag.store(true, Ordering::Relaxed);
        Self(Some(flag))
    }

    /// The instance outlives the call.
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        if let Some(flag) = self.0 {
            flag.store(false, Ordering::Relaxed);
        }
    }
}

impl State {
    /// Drops the instance and everything that lived in it.
    fn lose(&mut self, why: &str) {
        self.instance = None;
        self.entities.clear(&why.into());
    }

    /// An instance that was made with more rights than there are now, or with others, does not live on. Returns whether
    /// one was dropped.
    fn notice_grants(&mut self, granted: &Arc<OpenedRights>) -> bool {
        let earlier = self.granted.replace(granted.clone());
        let may_go_on = earlier.is_none_or(|earlier| {
            Arc::ptr_eq(&earlier, granted) || granted.effective.can_keep_instance_of(&earlier.effective)
        });
        if may_go_on || self.instance.is_none() {
            return false;
        }
        self.lose("what is granted to the plugin has changed");
        true
    }

    /// An instance that was made with other values does not live on: it would go on with a key that was taken back. Returns
    /// whether one was dropped.
    fn notice_variables(&mut self, authority: &Authority) -> bool {
        let is_same = self.variables == authority.variables;
        self.variables.clone_from(&authority.variables);
        if is_same || self.instance.is_none() {
            return false;
        }
        self.lose("the values that the plugin is given have changed");
        true
    }

    /// An instance that was taken out and never put back belonged to a call whose future was dropped.
    fn notice_abandoned(&mut self) {
        if self.instance.is_none() && !self.entities.is_empty() {
            self.lose("an earlier call was abandoned while it ran");
        }
    }
}

fn bad_arguments(message: String) -> Error {
    Error::new(ErrorKind::InvalidArguments, Phase::Validate, message)
}
