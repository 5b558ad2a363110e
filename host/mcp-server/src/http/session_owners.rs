//! The principals of sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::transport::streamable_http_server::session::SessionId;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

/// The sessions of a server, and who began each of them.
pub(super) struct SessionOwners {
    manager: Arc<LocalSessionManager>,
    owners: Mutex<HashMap<String, String>>,
    sessions_max: usize,
}

impl SessionOwners {
    pub(super) fn new(manager: Arc<LocalSessionManager>, sessions_max: usize) -> Self {
        Self {
            manager,
            owners: Mutex::default(),
            sessions_max,
        }
    }

    /// Returns the number of live sessions.
    pub(super) async fn len(&self) -> usize {
        self.manager.sessions.read().await.len()
    }

    /// Whether another session may begin.
    pub(super) async fn has_room(&self) -> bool {
        self.len().await < self.sessions_max
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
