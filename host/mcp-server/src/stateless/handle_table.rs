//! The handles of a server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::time::Instant;

use super::fixed_method::EntityKind;
use super::live_session::LiveSession;

/// How long the handles of a session are valid after the last use of the session. The use of one handle extends the
/// validity of all.
pub(super) const HANDLE_TTL: Duration = Duration::from_secs(30 * 60);

/// The random bytes of a handle: 144 bits cannot be guessed.
const RANDOM_BYTES: usize = 18;

/// Maximum number of sessions with handles of one principal. Above this number, the least recently used session and its
/// handles are removed.
const SESSIONS_PER_PRINCIPAL_MAX: usize = 100;

/// Maximum number of handles of one session.
const HANDLES_PER_SESSION_MAX: usize = 10_000;

/// The handles that were issued, with the sessions of their entities.
#[derive(Default)]
pub(super) struct HandleTable {
    state: Mutex<HandleState>,
}

#[derive(Default)]
struct HandleState {
    sessions: HashMap<u64, SessionHandles>,
    handles: HashMap<String, Handle>,
    /// The number of the session that was added last.
    last_session: u64,
}

struct SessionHandles {
    session: Arc<LiveSession>,
    principal: String,
    /// The handles, by type and id.
    handles: HashMap<(EntityKind, String), String>,
}

struct Handle {
    session: u64,
    kind: EntityKind,
    id: String,
}

/// The entity of a handle.
#[derive(Clone)]
pub(super) struct Entity {
    pub(super) kind: EntityKind,
    pub(super) id: String,
    pub(super) session: Arc<LiveSession>,
    session_number: u64,
}

impl Entity {
    pub(super) fn shares_session_with(&self, other: &Self) -> bool {
        self.session_number == other.session_number
    }
}

impl HandleTable {
    /// Returns the entity of a handle, if the handle was issued to the principal and has not expired, and records a use
    /// of its session.
    pub(super) fn entity(&self, handle: &str, principal: &str) -> Option<Entity> {
        let mut state = self.state();
        state.expire();
        let HandleState { sessions, handles, .. } = &*state;
        let handle = handles.get(handle)?;
        let session_handles = sessions.get(&handle.session)?;
        if session_handles.principal != principal {
            return None;
        }
        session_handles.session.record_use();
        Some(Entity {
            kind: handle.kind.clone(),
            id: handle.id.clone(),
            session: session_handles.session.clone(),
            session_number: handle.session,
        })
    }

    /// Returns the handles of entities of a session, in the order of the entities. An entity without a handle gets a
    /// new handle. Returns `None` for the entity if the session has too many handles or the system has no randomness.
    pub(super) fn issue(
        &self,
        session: &Arc<LiveSession>,
        principal: &str,
        entities: impl IntoIterator<Item = (EntityKind, String)>,
    ) -> Vec<Option<String>> {
        let mut state = self.state();
        state.expire();
        let number = state.number_or_add(session, principal);
        entities.into_iter().map(|entity| state.issue(number, entity)).collect()
    }

    /// Returns the sessions that have handles.
    pub(super) fn sessions(&self) -> Vec<Arc<LiveSession>> {
        let state = self.state();
        state
            .sessions
            .values()
            .map(|session_handles| session_handles.session.clone())
            .collect()
    }

    /// Removes a session and its handles, if the table contains the session.
    pub(super) fn remove(&self, session: &Arc<LiveSession>) {
        let mut state = self.state();
        let mut entries = state.sessions.iter();
        if let Some(number) = entries
            .find_map(|(number, session_handles)| Arc::ptr_eq(&session_handles.session, session).then_some(*number))
        {
            state.remove(number);
        }
    }

    /// Removes the sessions whose handles have expired.
    pub(super) fn expire(&self) {
        self.state().expire();
    }

    fn state(&self) -> MutexGuard<'_, HandleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.state().handles.len()
    }
}

impl HandleState {
    fn expire(&mut self) {
        let now = Instant::now();
        let is_live =
            |session_handles: &SessionHandles| now.duration_since(session_handles.session.last_use()) < HANDLE_TTL;
        if self.sessions.values().all(is_live) {
            return;
        }
        self.sessions.retain(|_, session_handles| is_live(session_handles));
        let sessions = &self.sessions;
        self.handles.retain(|_, handle| sessions.contains_key(&handle.session));
    }

    /// Returns the number of a session. A session that is not in the table is added.
    fn number_or_add(&mut self, session: &Arc<LiveSession>, principal: &str) -> u64 {
        let session_handles = self
            .sessions
            .iter()
            .find(|(_, session_handles)| Arc::ptr_eq(&session_handles.session, session));
        if let Some((number, session_handles)) = session_handles {
            session_handles.session.record_use();
            return *number;
        }
        self.make_room(principal);
        self.last_session += 1;
        let session_handles = SessionHandles {
            session: session.clone(),
            principal: principal.to_owned(),
            handles: HashMap::new(),
        };
        self.sessions.insert(self.last_session, session_handles);
        self.last_session
    }

    /// Removes the least recently used session of a principal that has reached the maximum number of sessions.
    fn make_room(&mut self, principal: &str) {
        let own = self
            .sessions
            .iter()
            .filter(|(_, session_handles)| session_handles.principal == principal);
        let mut own: Vec<_> = own
            .map(|(number, session_handles)| (session_handles.session.last_use(), *number))
            .collect();
        if own.len() < SESSIONS_PER_PRINCIPAL_MAX {
            return;
        }
        own.sort_unstable();
        if let Some((_, oldest)) = own.first() {
            self.remove(*oldest);
        }
    }

    fn remove(&mut self, session: u64) {
        self.sessions.remove(&session);
        self.handles.retain(|_, handle| handle.session != session);
    }

    fn issue(&mut self, session: u64, entity: (EntityKind, String)) -> Option<String> {
        let session_handles = self.sessions.get_mut(&session)?;
        if let Some(handle) = session_handles.handles.get(&entity) {
            return Some(handle.clone());
        }
        if session_handles.handles.len() >= HANDLES_PER_SESSION_MAX {
            return None;
        }
        let handle = random_handle(&entity.0.name)?;
        session_handles.handles.insert(entity.clone(), handle.clone());
        let (kind, id) = entity;
        self.handles.insert(handle.clone(), Handle { session, kind, id });
        Some(handle)
    }
}

/// Returns a handle that cannot be guessed, or `None` if the system has no randomness.
fn random_handle(prefix: &str) -> Option<String> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random)
        .inspect_err(|error| tracing::error!(%error, "the system has no randomness for a handle"))
        .ok()?;
    Some(format!("{prefix}_{}", URL_SAFE_NO_PAD.encode(random)))
}

/// Returns whether a text has the form of a handle of a type.
pub(super) fn looks_like_handle(text: &str, prefix: &str) -> bool {
    let random = text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_'));
    random.is_some_and(|random| {
        URL_SAFE_NO_PAD
            .decode(random)
            .is_ok_and(|bytes| bytes.len() == RANDOM_BYTES)
    })
}

#[cfg(test)]
mod tests;
