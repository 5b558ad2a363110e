//! The sessions in which calls without a handle run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::live_session::LiveSession;
use crate::principal::Principal;
use toolwit::registry::Registry;

/// Maximum time in which calls without a handle share a session. The entities of one session can be used together, but a
/// trap of a guest ends all entities of that guest in the session. With this maximum, a trap ends fewer entities.
const AGE_MAX: Duration = Duration::from_secs(10 * 60);

/// Maximum number of calls without a handle in one session.
const CALLS_MAX: u32 = 500;

/// The current session of each principal. The entities of an earlier session stay alive until their handles expire.
#[derive(Default)]
pub(super) struct CurrentSessions {
    sessions: Mutex<HashMap<String, CurrentSession>>,
}

struct CurrentSession {
    session: Arc<LiveSession>,
    packages: Registry,
    start: Instant,
    calls: u32,
}

impl CurrentSessions {
    /// Returns the current session of a principal, and counts a call. Returns `None` if the principal has no usable
    /// session.
    pub(super) fn for_call(&self, principal: &Principal, packages: &Registry) -> Option<Arc<LiveSession>> {
        let mut sessions = self.lock();
        let current = sessions.get_mut(principal.name())?;
        if !current.is_usable(packages) {
            return None;
        }
        current.calls += 1;
        current.session.record_use();
        Some(current.session.clone())
    }

    /// Sets the session of a principal, and counts its first call.
    pub(super) fn set(&self, principal: &Principal, session: Arc<LiveSession>, packages: Registry) {
        let current = CurrentSession {
            session,
            packages,
            start: Instant::now(),
            calls: 1,
        };
        // The earlier session is dropped after the lock is released.
        let _earlier = self.lock().insert(principal.name().to_owned(), current);
    }

    /// Returns the current sessions of all principals.
    pub(super) fn sessions(&self) -> Vec<Arc<LiveSession>> {
        self.lock().values().map(|current| current.session.clone()).collect()
    }

    /// Removes a session, if it is the current session of a principal.
    pub(super) fn remove(&self, session: &Arc<LiveSession>) {
        self.lock().retain(|_, current| !Arc::ptr_eq(&current.session, session));
    }

    /// Removes the sessions that are too old for further calls. A session with valid handles stays alive in the
    /// [`HandleTable`](super::handle_table::HandleTable).
    pub(super) fn expire(&self) {
        self.lock().retain(|_, current| current.start.elapsed() < AGE_MAX);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, CurrentSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CurrentSession {
    fn is_usable(&self, packages: &Registry) -> bool {
        self.start.elapsed() < AGE_MAX && self.calls < CALLS_MAX && self.packages.is_same(packages)
    }
}
