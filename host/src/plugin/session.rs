//! The session instance: where the resources of a conversation live.
//!
//! A plugin that hands out resources has one instance for each conversation, so that handles of different calls meet. Calls
//! go in one after the other. While a call runs, the instance is taken out of the session; only a call that ended well
//! puts it back, so that an instance which trapped, was stopped or was abandoned is never entered again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;
use wasmtime::component::Val;

use super::answer::answer;
use super::authority::{Authority, Granted};
use super::component::Plugin;
use super::decode::decode_arguments;
use super::encode::find_handles;
use super::entity::{EntityKey, EntityTable, Handles};
use super::harvest::Harvest;
use super::inspection::id_parameter;
use super::instance::{CallClock, Instance};
use super::scope::ConversationNumber;
use super::tool::invalid;
use super::types::ResourceIndex;
use super::wasi::Stdio;
use crate::error::{Error, ErrorKind, Phase};
use crate::limits::CallLimits;
use crate::tool::{Arguments, ToolContext, ToolResult};

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
    conversation: ConversationNumber,
    plugin: Arc<Plugin>,
    state: Mutex<State>,
    is_alive: AtomicBool,
    last_used: AtomicU64,
}

#[derive(Default)]
struct State {
    instance: Option<Instance>,
    entities: EntityTable,
    /// Why the instance before this one, or before the next one, is gone.
    lost: Option<String>,
    /// What was granted when the instance was last called.
    granted: Option<Arc<Granted>>,
}

impl Session {
    pub(crate) fn new(plugin: Arc<Plugin>, conversation: ConversationNumber) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            conversation,
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
        self.conversation
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
        let waiting = Instant::now();
        let mut state = self.enter(context, &limits).await?;
        state.notice_abandoned();
        if state.notice_grants(&authority.granted) {
            self.is_alive.store(false, Ordering::Relaxed);
        }
        let key = self.target_key(function, target, &mut arguments)?;
        let (params, given) = self.decode(&state, function, key.as_ref(), &arguments)?;
        let linked = self.plugin.linked().await?;
        let _permit = self.plugin.permit(context, &limits).await?;
        let queued = waiting.elapsed();
        let _running = self.plugin.runtime().engines.ticker.run();
        let clock = CallClock::start(&limits, context.cancel());
        let mut instance = match state.instance.take() {
            Some(mut instance) => {
                instance.start_call(&clock, authority)?;
                instance
            }
            None => {
                self.plugin.runtime().sessions.admit(self);
                Instance::new(&linked, &clock, Stdio::Log, authority, &self.plugin.runtime().network).await?
            }
        };
        self.is_alive.store(true, Ordering::Relaxed);
        let called = instance.call(&linked, function, &params, &clock).await;
        let value = match called {
            Ok(value) => value,
            Err(error) => {
                state.lose(&error.message);
                self.is_alive.store(false, Ordering::Relaxed);
                return Err(error);
            }
        };
        for key in &given {
            state.entities.remove(key);
        }
        let depth = key
            .as_ref()
            .and_then(|key| state.entities.get(key))
            .map_or(0, |entity| entity.depth)
            + 1;
        let harvest = Harvest {
            session: self,
            linked: &linked,
            clock: &clock,
            depth,
        };
        let mut result = self
            .answer(harvest, &mut instance, &mut state.entities, function, value.as_ref())
            .await;
        if let Ok(result) = &mut result {
            let mut usage = instance.usage(&clock);
            usage.queued = queued;
            result.usage = Some(usage);
            result.log = instance.take_log();
        }
        match &result {
            // A result that is too large harms nobody but its caller; anything else left the instance unusable.
            Ok(_) => state.instance = Some(instance),
            Err(error) if error.kind == ErrorKind::ResultBytes => state.instance = Some(instance),
            Err(error) => {
                state.lose(&error.message);
                self.is_alive.store(false, Ordering::Relaxed);
            }
        }
        result
    }

    /// Waits for the calls before this one.
    async fn enter(&self, context: &ToolContext, limits: &CallLimits) -> Result<MutexGuard<'_, State>, Error> {
        static CLOCK: AtomicU64 = AtomicU64::new(1);
        self.last_used
            .store(CLOCK.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        tokio::select! {
            biased;
            state = self.state.lock() => Ok(state),
            () = context.cancel().cancelled() => {
                Err(Error::new(ErrorKind::Cancelled, Phase::Execute, "the call was cancelled before it began"))
            }
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
        key: Option<&EntityKey>,
        arguments: &Arguments,
    ) -> Result<(Vec<Val>, Vec<EntityKey>), Error> {
        let shape = &self.plugin.inspection().shape;
        let mut params = Vec::new();
        if let Some(key) = key {
            let entity = state.entities.get(key).ok_or_else(|| self.gone(key, state))?;
            params.push(Val::Resource(entity.handle));
        }
        let mut handles = Handles {
            entities: &state.entities,
            shape,
            given: Vec::new(),
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

    fn gone(&self, (index, id): &EntityKey, state: &State) -> Error {
        let shape = &self.plugin.inspection().shape;
        let name = shape.resources[index.0].json_name();
        let why = match &state.lost {
            Some(lost) => format!(": {lost}"),
            None => String::new(),
        };
        Error::new(
            ErrorKind::EntityGone,
            Phase::Execute,
            format!("the {name} `{id}` is gone{why}"),
        )
        .with_suggestion(shape.how_to_get(*index))
    }

    /// Turns what the function gave into what the tool answers, entities and their tools included.
    async fn answer(
        &self,
        harvest: Harvest<'_>,
        instance: &mut Instance,
        entities: &mut EntityTable,
        function: usize,
        value: Option<&Val>,
    ) -> Result<ToolResult, Error> {
        let function = &self.plugin.inspection().shape.functions[function];
        let mut found = Vec::new();
        if let (Some(ty), Some(value)) = (&function.result, value) {
            find_handles(ty, value, &mut found);
        }
        let limits = harvest.clock.limits;
        let gathered = harvest.gather(instance, entities, &found).await?;
        let mut result = answer(function, value, &mut gathered.values.into_iter(), limits)?;
        result.providers = gathered.providers;
        Ok(result)
    }
}

impl State {
    /// Drops the instance and everything that lived in it.
    fn lose(&mut self, why: &str) {
        self.instance = None;
        self.entities.clear();
        self.lost = Some(why.to_owned());
    }

    /// An instance that was made with more rights than there are now, or with others, does not live on. Returns whether
    /// one was dropped.
    fn notice_grants(&mut self, granted: &Arc<Granted>) -> bool {
        let earlier = self.granted.replace(granted.clone());
        let may_go_on = earlier
            .is_none_or(|earlier| Arc::ptr_eq(&earlier, granted) || granted.effective.continues(&earlier.effective));
        if may_go_on || self.instance.is_none() {
            return false;
        }
        self.lose("what is granted to the plugin has changed");
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
