//! The handles that a server has issued for live entities.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::time::Instant;

use super::handle_method::EntityKind;
use super::live_session::LiveSession;

/// How long the handles of a session are valid after the last use of the session. The use of one handle extends the
/// validity of all handles of its session.
pub(super) const HANDLE_TTL: Duration = Duration::from_secs(30 * 60);

/// The number of random bytes in a handle. Their 144 bits cannot be guessed.
const RANDOM_BYTES: usize = 18;

/// The length of the random part of a handle, in characters.
pub(super) const HANDLE_RANDOM_CHARS: usize = RANDOM_BYTES.div_ceil(3) * 4;

/// Maximum number of sessions of one principal that have handles. Above this number, the least recently used session and
/// its handles are removed.
const SESSIONS_PER_PRINCIPAL_MAX: usize = 100;

/// Maximum number of handles of one session.
const HANDLES_PER_SESSION_MAX: usize = 10_000;

/// The handles that were issued, with the sessions of their entities.
#[derive(Default)]
pub(super) struct HandleTable {
    records: Mutex<HandleRecords>,
}

#[derive(Default)]
struct HandleRecords {
    /// The sessions that have handles, by their numbers.
    sessions: HashMap<u64, SessionHandles>,
    /// The record of each handle, by the handle.
    handles: HashMap<String, HandleRecord>,
    /// The number of the session that was added last.
    last_session_number: u64,
}

struct SessionHandles {
    session: Arc<LiveSession>,
    principal: String,
    /// The handles, by the type and the id of their entity.
    handles: HashMap<(EntityKind, String), String>,
}

struct HandleRecord {
    session_number: u64,
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
    /// Returns the entity of a handle, and records a use of its session. Returns `None` if the handle was not issued to the
    /// principal, or has expired.
    pub(super) fn entity(&self, handle: &str, principal: &str) -> Option<Entity> {
        let mut records = self.lock();
        records.expire();
        let HandleRecords { sessions, handles, .. } = &*records;
        let record = handles.get(handle)?;
        let session_handles = sessions.get(&record.session_number)?;
        if session_handles.principal != principal {
            return None;
        }
        session_handles.session.record_use();
        Some(Entity {
            kind: record.kind.clone(),
            id: record.id.clone(),
            session: session_handles.session.clone(),
            session_number: record.session_number,
        })
    }

    /// Returns the handles of entities of a session, in the order of the entities. An entity without a handle gets a new
    /// handle. If a new handle cannot be issued, the item of the entity is `None`: the session has too many handles, or the
    /// random number generator of the system fails.
    pub(super) fn issue(
        &self,
        session: &Arc<LiveSession>,
        principal: &str,
        entities: impl IntoIterator<Item = (EntityKind, String)>,
    ) -> Vec<Option<String>> {
        let mut records = self.lock();
        records.expire();
        let number = records.number_or_add(session, principal);
        let handles = entities.into_iter().map(|entity| records.issue(number, entity));
        handles.collect()
    }

    /// Returns the sessions that have handles.
    pub(super) fn sessions(&self) -> Vec<Arc<LiveSession>> {
        let records = self.lock();
        let sessions = records.sessions.values();
        sessions.map(|handles| handles.session.clone()).collect()
    }

    /// Removes a session and its handles, if the table contains the session.
    pub(super) fn remove(&self, session: &Arc<LiveSession>) {
        let mut records = self.lock();
        if let Some(number) = records.number(session) {
            records.remove(number);
        }
    }

    /// Removes the sessions whose handles have expired.
    pub(super) fn expire(&self) {
        self.lock().expire();
    }

    fn lock(&self) -> MutexGuard<'_, HandleRecords> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.lock().handles.len()
    }
}

impl HandleRecords {
    fn expire(&mut self) {
        let now = Instant::now();
        let is_live =
            |session_handles: &SessionHandles| now.duration_since(session_handles.session.last_use()) < HANDLE_TTL;
        if self.sessions.values().all(is_live) {
            return;
        }
        self.sessions.retain(|_, session_handles| is_live(session_handles));
        let sessions = &self.sessions;
        self.handles
            .retain(|_, record| sessions.contains_key(&record.session_number));
    }

    /// Returns the number of a session, or `None` if the session has no handles.
    fn number(&self, session: &Arc<LiveSession>) -> Option<u64> {
        let mut sessions = self.sessions.iter();
        let found = sessions.find(|(_, session_handles)| Arc::ptr_eq(&session_handles.session, session));
        found.map(|(number, _)| *number)
    }

    /// Returns the number of a session. If the table contains the session, records a use of the session. Otherwise, adds the
    /// session to the table.
    fn number_or_add(&mut self, session: &Arc<LiveSession>, principal: &str) -> u64 {
        if let Some(number) = self.number(session) {
            session.record_use();
            return number;
        }
        self.make_room(principal);
        self.last_session_number += 1;
        let session_handles = SessionHandles {
            session: session.clone(),
            principal: principal.to_owned(),
            handles: HashMap::new(),
        };
        self.sessions.insert(self.last_session_number, session_handles);
        self.last_session_number
    }

    /// Removes the least recently used session of a principal that has reached the maximum number of sessions.
    fn make_room(&mut self, principal: &str) {
        let sessions = self
            .sessions
            .iter()
            .filter(|(_, session_handles)| session_handles.principal == principal);
        let mut sessions: Vec<_> = sessions
            .map(|(number, session_handles)| (session_handles.session.last_use(), *number))
            .collect();
        if sessions.len() < SESSIONS_PER_PRINCIPAL_MAX {
            return;
        }
        sessions.sort_unstable();
        if let Some((_, number)) = sessions.first() {
            self.remove(*number);
        }
    }

    fn remove(&mut self, session_number: u64) {
        self.sessions.remove(&session_number);
        self.handles.retain(|_, record| record.session_number != session_number);
    }

    fn issue(&mut self, session_number: u64, entity: (EntityKind, String)) -> Option<String> {
        let session_handles = self.sessions.get_mut(&session_number)?;
        if let Some(handle) = session_handles.handles.get(&entity) {
            return Some(handle.clone());
        }
        if session_handles.handles.len() >= HANDLES_PER_SESSION_MAX {
            return None;
        }
        let handle = random_handle(&entity.0.name)?;
        session_handles.handles.insert(entity.clone(), handle.clone());
        let (kind, id) = entity;
        let record = HandleRecord {
            session_number,
            kind,
            id,
        };
        self.handles.insert(handle.clone(), record);
        Some(handle)
    }
}

/// Returns a handle that cannot be guessed, or `None` if the random number generator of the system fails.
fn random_handle(prefix: &str) -> Option<String> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random)
        .inspect_err(|error| tracing::error!(%error, "the system has no random bytes for a handle"))
        .ok()?;
    Some(format!("{prefix}_{}", URL_SAFE_NO_PAD.encode(random)))
}

/// Returns whether a text has the form of a handle with a prefix, which is the name of an entity's type.
pub(super) fn looks_like_handle(text: &str, prefix: &str) -> bool {
    let random = text.strip_prefix(prefix).and_then(|suffix| suffix.strip_prefix('_'));
    random.is_some_and(|random| {
        URL_SAFE_NO_PAD
            .decode(random)
            .is_ok_and(|bytes| bytes.len() == RANDOM_BYTES)
    })
}

#[cfg(test)]
mod tests;
