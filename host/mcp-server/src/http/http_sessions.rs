//! The principals of the sessions over HTTP, and the limits on the number of sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::transport::streamable_http_server::session::SessionId;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::sync::MutexGuard;

use crate::open_streams::OpenStreams;
use crate::principal::Principal;

/// The sessions of a server over HTTP, with the principal that began each session. Limits the number of sessions.
pub(super) struct HttpSessions {
    manager: Arc<LocalSessionManager>,
    owners: Mutex<HashMap<String, SessionOwner>>,
    sessions_max: usize,
    /// Locked while a session begins.
    begin_lock: tokio::sync::Mutex<()>,
}

/// The principal of a session, the group of the principal, and the open responses of the session.
struct SessionOwner {
    principal: String,
    group: String,
    streams: OpenStreams,
}

impl HttpSessions {
    pub(super) fn new(manager: Arc<LocalSessionManager>, sessions_max: usize) -> Self {
        Self {
            manager,
            owners: Mutex::default(),
            sessions_max,
            begin_lock: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the number of live sessions.
    pub(super) async fn len(&self) -> usize {
        self.manager.sessions.read().await.len()
    }

    /// Permits a principal of `group` to begin a session. Returns `None` if the server or the group has too many sessions.
    /// The `group_count` groups share the maximum number of sessions equally. While the returned guard exists, no other
    /// session can begin, so that concurrent requests do not exceed the limits.
    pub(super) async fn permit_new_session(&self, group: &str, group_count: usize) -> Option<MutexGuard<'_, ()>> {
        let begin_guard = self.begin_lock.lock().await;
        let live = self.manager.sessions.read().await;
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let is_live = |session: &str| live.contains_key(&SessionId::from(session));
        let group_sessions = owners
            .iter()
            .filter(|(session, owner)| owner.group == group && is_live(session));
        let group_max = (self.sessions_max / group_count).max(1);
        (live.len() < self.sessions_max && group_sessions.count() < group_max).then_some(begin_guard)
    }

    /// Records the principal that began a session, and removes the entries of sessions that have ended.
    pub(super) async fn add(&self, session: &str, principal: &Principal) {
        let live = self.manager.sessions.read().await;
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|session, _| live.contains_key(&SessionId::from(session.as_str())));
        let owner = SessionOwner {
            principal: principal.name().to_owned(),
            group: principal.group().to_owned(),
            streams: OpenStreams::default(),
        };
        owners.insert(session.to_owned(), owner);
    }

    /// Returns the open responses of a session. `None` if the session is not recorded, or belongs to another principal. A
    /// session that has ended remains recorded until the next call of [`add`](Self::add).
    pub(super) fn streams(&self, session: &str, principal: &str) -> Option<OpenStreams> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = owners.get(session).filter(|owner| owner.principal == principal);
        owner.map(|owner| owner.streams.clone())
    }
}
