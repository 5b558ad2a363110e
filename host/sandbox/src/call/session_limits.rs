//! The registry of live session instances, which evicts the least recently used.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::session::Session;
use super::session_waits::SessionWaits;
use toolwit_core::limits::EngineLimits;

/// The part of the pool that the session instances of the process may occupy, as a divisor: the rest is for calls.
const POOL_DIVISOR: u64 = 2;

/// Limits the number of live session instances per conversation and per process, and the part of the pool that they occupy.
/// Evicts the least recently used first.
pub(crate) struct SessionLimits {
    sessions: Mutex<Vec<Weak<Session>>>,
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
            slots_max: (u64::from(limits.instances_max) / POOL_DIVISOR).max(1),
        }
    }

    /// Returns the calls that wait for a session.
    pub(super) fn waits(&self) -> &SessionWaits {
        &self.waits
    }

    /// Registers a session that is about to create its instance, and evicts others if a limit is exceeded.
    pub(crate) fn make_room_for(&self, session: &Arc<Session>) {
        let mut live = self.others_alive(session);
        live.sort_by_key(|other| other.last_used());
        let of_conversation = live
            .iter()
            .filter(|other| other.conversation() == session.conversation())
            .count();
        let mut too_many_here = (of_conversation + 1).saturating_sub(self.per_conversation_max);
        let mut too_many = (live.len() + 1).saturating_sub(self.process_max);
        let slots = live.iter().map(|other| other.slots()).sum::<u64>() + session.slots();
        let mut too_many_slots = slots.saturating_sub(self.slots_max);
        for other in live {
            let is_here = other.conversation() == session.conversation();
            let is_over_limit = too_many > 0 || too_many_slots > 0 || (too_many_here > 0 && is_here);
            // A session in a call is not evicted.
            if is_over_limit && other.evict() {
                too_many = too_many.saturating_sub(1);
                too_many_slots = too_many_slots.saturating_sub(other.slots());
                too_many_here = too_many_here.saturating_sub(usize::from(is_here));
            }
        }
    }

    /// Returns the other sessions that have an instance. Registers `session`, and removes dropped sessions from the
    /// registry.
    fn others_alive(&self, session: &Arc<Session>) -> Vec<Arc<Session>> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|other| other.strong_count() > 0);
        let all: Vec<_> = sessions.iter().filter_map(Weak::upgrade).collect();
        if !all.iter().any(|other| Arc::ptr_eq(other, session)) {
            sessions.push(Arc::downgrade(session));
        }
        all.into_iter()
            .filter(|other| !Arc::ptr_eq(other, session) && other.is_alive())
            .collect()
    }
}
