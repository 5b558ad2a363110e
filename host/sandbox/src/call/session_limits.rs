//! The limits on live session instances. When one is exceeded, the least recently used instances are evicted.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::session::Session;
use super::session_waits::SessionWaits;
use toolwit_core::limits::EngineLimits;

/// The limit for session instances is the number of slots in wasmtime's instance pool, divided by this number. The other slots
/// are for fresh instances.
const SESSION_SLOTS_DIVISOR: u64 = 2;

/// Limits the number of live session instances per conversation and per process, and the slots of the instance pool that they
/// occupy. Evicts the least recently used instances first.
pub(crate) struct SessionLimits {
    /// The sessions of the process that have created an instance, or are about to create one.
    sessions: Mutex<Vec<Weak<Session>>>,
    /// The registered waits of calls for a session.
    waits: SessionWaits,
    per_conversation_max: usize,
    process_max: usize,
    /// The number of slots of the pool that all session instances together may occupy.
    slots_max: u64,
}

impl SessionLimits {
    pub(crate) fn new(limits: &EngineLimits) -> Self {
        Self {
            sessions: Mutex::new(Vec::new()),
            waits: SessionWaits::default(),
            per_conversation_max: limits.sessions_per_conversation_max,
            process_max: limits.sessions_max,
            slots_max: (u64::from(limits.instances_max) / SESSION_SLOTS_DIVISOR).max(1),
        }
    }

    /// Returns the registered waits of calls for a session.
    pub(super) fn waits(&self) -> &SessionWaits {
        &self.waits
    }

    /// Registers a session that is about to create its instance, and evicts instances of other sessions if a limit would be
    /// exceeded. A limit can still be exceeded afterwards, because a session that a call is using is not evicted.
    pub(crate) fn make_room_for(&self, session: &Arc<Session>) {
        let mut other_sessions = self.register(session);
        other_sessions.sort_by_key(|other| other.last_used());
        let same_conversation_count = other_sessions
            .iter()
            .filter(|other| other.conversation() == session.conversation())
            .count();
        let mut excess_in_conversation = (same_conversation_count + 1).saturating_sub(self.per_conversation_max);
        let mut excess_in_process = (other_sessions.len() + 1).saturating_sub(self.process_max);
        let slots = other_sessions.iter().map(|other| other.slots()).sum::<u64>() + session.slots();
        let mut excess_slots = slots.saturating_sub(self.slots_max);
        for other in other_sessions {
            let is_same_conversation = other.conversation() == session.conversation();
            let is_over_limit =
                excess_in_process > 0 || excess_slots > 0 || (excess_in_conversation > 0 && is_same_conversation);
            if is_over_limit && other.evict() {
                excess_in_process = excess_in_process.saturating_sub(1);
                excess_slots = excess_slots.saturating_sub(other.slots());
                excess_in_conversation = excess_in_conversation.saturating_sub(usize::from(is_same_conversation));
            }
        }
    }

    /// Registers `session`, and removes dropped sessions from the list. Returns the other sessions that have an instance, or a
    /// call that creates one.
    fn register(&self, session: &Arc<Session>) -> Vec<Arc<Session>> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|other| other.strong_count() > 0);
        let registered: Vec<_> = sessions.iter().filter_map(Weak::upgrade).collect();
        if !registered.iter().any(|other| Arc::ptr_eq(other, session)) {
            sessions.push(Arc::downgrade(session));
        }
        registered
            .into_iter()
            .filter(|other| !Arc::ptr_eq(other, session) && other.is_alive())
            .collect()
    }
}
