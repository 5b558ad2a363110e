//! The session instance: the instance that holds the resources of a conversation.
//!
//! A plugin with resources has one instance per conversation, so that handles from different calls can be used together. Its
//! calls run sequentially. While a call runs, the instance is moved out of the session. Only a call that leaves the instance
//! intact puts it back, so that an instance is never entered again if it trapped, was stopped or was abandoned.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::entity_table::EntityTable;
use super::instance::Instance;
use super::plugin::Plugin;
use super::scope::ConversationPolicy;
use super::session_call::ResourceGatherer;
use crate::grants::authority::{Authority, ConversationNumber, OpenedRights};
use crate::link::compile::link_once::cancelled_before_start;
use crate::link::host::host_api::CallStack;
use toolwit_core::ToolContext;
use toolwit_core::limits::CallLimits;
use toolwit_core::{Error, ErrorKind, Phase};

/// The reason why the entities of a version of a plugin are gone in a conversation that uses another version.
const REPLACED_REASON: &str = "its plugin was replaced by another version";

/// A plugin in one conversation: its session instance, if it exists, and the entities in this instance.
pub(crate) struct Session {
    number: u64,
    /// The number as text; see [`ToolProvider::version`](toolwit_core::ToolProvider::version).
    version: String,
    policy: ConversationPolicy,
    plugin: Arc<Plugin>,
    pub(super) gatherer: &'static dyn ResourceGatherer,
    state: Mutex<SessionState>,
    /// Whether the session has an instance, or a running call that uses or creates an instance.
    pub(super) is_alive: AtomicBool,
    /// Whether the conversation uses another version of the plugin.
    is_replaced: AtomicBool,
    /// The logical time of the last use, in uses of any session.
    last_used: AtomicU64,
}

/// The state of a session that only one call at a time may use.
#[derive(Default)]
pub(super) struct SessionState {
    pub(super) instance: Option<Instance>,
    pub(super) entities: EntityTable,
    /// Whether a call has left an instance in the session that was not dropped since. If there is no instance although the value is
    /// `true`, a call that used it was abandoned.
    has_instance: bool,
    /// The reason why the last instance was dropped, if no call has reported it yet.
    drop_reason: Option<String>,
    /// The rights of the plugin in the last call.
    last_rights: Option<Arc<OpenedRights>>,
    /// The environment variables in the last call. A guest reads its environment once, so a change needs a new instance.
    last_variables: Vec<(String, Zeroizing<String>)>,
}

impl Session {
    /// Returns whether the session has or had an instance whose loss no call has reported.
    pub(super) fn had_state(&self) -> bool {
        let state = self.state.try_lock();
        state.map_or(true, |state| state.has_instance || state.drop_reason.is_some())
    }

    /// Lets the first call of this new session report that its plugin was replaced, and the state of the earlier version is gone.
    pub(super) fn report_loss(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            state.drop_reason = Some(REPLACED_REASON.to_owned());
        }
    }

    pub(super) fn new(
        plugin: Arc<Plugin>,
        policy: ConversationPolicy,
        gatherer: &'static dyn ResourceGatherer,
    ) -> Self {
        static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        Self {
            number,
            version: number.to_string(),
            policy,
            plugin,
            gatherer,
            state: Mutex::default(),
            is_alive: AtomicBool::new(false),
            is_replaced: AtomicBool::new(false),
            last_used: AtomicU64::new(0),
        }
    }

    /// Returns the number of the session, unique in this process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns a text that differs for each version of the plugin in the conversation.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn conversation(&self) -> ConversationNumber {
        self.policy.conversation()
    }

    pub(crate) fn policy(&self) -> &ConversationPolicy {
        &self.policy
    }

    pub(crate) fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    /// Returns the number of slots that an instance of the session occupies in wasmtime's instance pool.
    pub(super) fn slots(&self) -> u64 {
        self.plugin.inspection().footprint.slots()
    }

    /// Returns whether the session has an instance, or a running call that uses or creates an instance.
    pub(super) fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Relaxed)
    }

    /// Returns the logical time of the last use. The logical time increases with every use of any session.
    pub(super) fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    /// Drops the instance and its entities, unless a call is using the session. Returns `false` if a call is using the session.
    pub(super) fn evict(&self) -> bool {
        let Ok(mut state) = self.state.try_lock() else {
            return false;
        };
        state.drop_instance("the host evicted it to make room for other instances");
        self.is_alive.store(false, Ordering::Relaxed);
        true
    }

    /// Drops the instance and its entities, because the conversation uses another version of the plugin from now on. If a call
    /// is using the session, the next call drops them.
    pub(super) fn retire(&self) {
        self.is_replaced.store(true, Ordering::Relaxed);
        if let Ok(mut state) = self.state.try_lock() {
            self.drop_if_replaced(&mut state);
        }
    }

    /// Drops the instance and its entities if the conversation uses another version of the plugin.
    pub(super) fn drop_if_replaced(&self, state: &mut SessionState) {
        if self.is_replaced.load(Ordering::Relaxed) && state.instance.is_some() {
            state.drop_instance(REPLACED_REASON);
            self.is_alive.store(false, Ordering::Relaxed);
        }
    }

    /// Records a use of the session and locks its state. Returns `None` if an earlier call is using the session.
    pub(super) fn try_enter(&self) -> Option<MutexGuard<'_, SessionState>> {
        static LOGICAL_CLOCK: AtomicU64 = AtomicU64::new(1);
        self.last_used
            .store(LOGICAL_CLOCK.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        self.state.try_lock().ok()
    }

    /// Waits for earlier calls to end, and locks the state. Returns the state and the waiting time.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] if the earlier calls do not end within `wall_max`, [`ErrorKind::Cancelled`] if this call is
    /// cancelled while it waits, and [`ErrorKind::Reentrant`] if an earlier call waits for this one.
    pub(super) async fn enter(
        &self,
        context: &ToolContext,
        limits: &CallLimits,
    ) -> Result<(MutexGuard<'_, SessionState>, Duration), Error> {
        if let Some(state) = self.try_enter() {
            return Ok((state, Duration::ZERO));
        }
        let started = Instant::now();
        // Boxed, because this future rarely runs and would enlarge the future of every call.
        let state = Box::pin(self.enter_in_turn(context, limits)).await?;
        Ok((state, started.elapsed()))
    }

    async fn enter_in_turn(
        &self,
        context: &ToolContext,
        limits: &CallLimits,
    ) -> Result<MutexGuard<'_, SessionState>, Error> {
        let waits = self.plugin.runtime().session_limits.waits();
        let _waiting = waits.begin(CallStack::held_sessions(context), self.number)?;
        tokio::select! {
            biased;
            () = context.cancel_token().cancelled() => Err(cancelled_before_start()),
            state = self.state.lock() => Ok(state),
            () = tokio::time::sleep(limits.wall_max) => {
                Err(Error::new(ErrorKind::Busy, Phase::Execute, "an earlier call in the same session is still running")
                    .with_suggestion("call again when it has ended"))
            }
        }
    }
}

impl SessionState {
    /// Drops the instance if it must not be used with the current rights or variables. Returns whether the instance was dropped.
    pub(super) fn drop_outdated_instance(&mut self, authority: &Authority) -> bool {
        // Both functions must run, because each of them also stores the current rights or variables for the next call.
        let is_dropped_for_rights = self.drop_if_rights_revoked(&authority.rights);
        let is_dropped_for_variables = self.drop_if_variables_changed(authority);
        is_dropped_for_rights || is_dropped_for_variables
    }

    /// Keeps the instance after a call.
    pub(super) fn keep_instance(&mut self, instance: Instance) {
        self.instance = Some(instance);
        self.has_instance = true;
    }

    /// Returns why the state of a plugin without entities is gone, once after each loss. A plugin with entities reports the loss for
    /// each of them instead.
    pub(super) fn take_drop_reason(&mut self) -> Option<String> {
        self.drop_reason.take()
    }

    /// Drops the instance and removes its entities. Stores the reason for each entity.
    pub(super) fn drop_instance(&mut self, reason: &str) {
        self.instance = None;
        if std::mem::take(&mut self.has_instance) {
            self.drop_reason = Some(reason.to_owned());
        }
        self.entities.clear(&reason.into());
    }

    /// Drops the instance if the plugin does not have all rights of its last call, or if rights have changed that are fixed at
    /// instantiation. Stores the rights of this call. Returns whether an instance was dropped.
    fn drop_if_rights_revoked(&mut self, rights: &Arc<OpenedRights>) -> bool {
        let last_rights = self.last_rights.replace(rights.clone());
        let can_keep_instance = last_rights.is_none_or(|last_rights| {
            Arc::ptr_eq(&last_rights, rights) || rights.effective.can_keep_instance_of(&last_rights.effective)
        });
        if can_keep_instance || self.instance.is_none() {
            return false;
        }
        self.drop_instance("the grants of the plugin have changed");
        true
    }

    /// Drops the instance if it was created with other variables, because the guest could use a key that was revoked. Stores the
    /// variables of this call. Returns whether an instance was dropped.
    fn drop_if_variables_changed(&mut self, authority: &Authority) -> bool {
        let are_unchanged = self.last_variables == authority.variables;
        self.last_variables.clone_from(&authority.variables);
        if are_unchanged || self.instance.is_none() {
            return false;
        }
        self.drop_instance("the environment variables of the plugin have changed");
        true
    }

    /// Removes the entities, and records the loss of the state, if the instance no longer exists. This happens if the future of a call was dropped while the call ran.
    pub(super) fn remove_abandoned_entities(&mut self) {
        if self.instance.is_none() && (self.has_instance || !self.entities.is_empty()) {
            self.drop_instance("an earlier call was abandoned while it ran");
        }
    }
}
