//! The principals of sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::transport::streamable_http_server::session::SessionId;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::sync::MutexGuard;

/// The sessions of a server, and who began each of them.
pub(super) struct SessionOwners {
    manager: Arc<LocalSessionManager>,
    owners: Mutex<HashMap<String, String>>,
    sessions_max: usize,
    /// Held while a session begins.
    beginning: tokio::sync::Mutex<()>,
}

impl SessionOwners {
    pub(super) fn new(manager: Arc<LocalSessionManager>, sessions_max: usize) -> Self {
        Self {
            manager,
            owners: Mutex::default(),
            sessions_max,
            beginning: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the number of live sessions.
    pub(super) async fn len(&self) -> usize {
        self.manager.sessions.read().await.len()
    }

    /// Begins a session, unless there are too many. `callers` is the number of those that share the sessions equally, so that none keeps
    /// the others out. Others wait until the returned guard is dropped, so that the sessions that begin at the same time count.
    pub(super) async fn begin(&self, principal: &str, callers: usize) -> Option<MutexGuard<'_, ()>> {
        let beginning = self.beginning.lock().await;
        let live = self.manager.sessions.read().await;
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let is_live = |session: &str| live.contains_key(&SessionId::from(session));
        let own = owners
            .iter()
            .filter(|(session, owner)| *owner == principal && is_live(session));
        let share = (self.sessions_max / callers).max(1);
        (live.len() < self.sessions_max && own.count() < share).then_some(beginning)
    }

    /// Records who began a session, and forgets the sessions that ended.
    pub(super) async fn add(&self, session: &str, principal: &str) {
        let live = self.manager.sessions.read().await;
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|session, _| live.contains_key(&SessionId::from(session.as_str())));
        owners.insert(session.to_owned(), principal.to_owned());
    }

    /// Whether a session is that of a principal. A session that does not exist is nobody's.
    pub(super) fn owns(&self, session: &str, principal: &str) -> bool {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(session).is_some_and(|owner| owner == principal)
    }
}
