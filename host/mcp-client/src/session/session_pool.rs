//! The sessions of a server. Callers with the same credentials share a session.

use std::sync::{Arc, Mutex, PoisonError};

use super::client_options::ClientOptions;
use super::server_session::ServerSession;
use crate::config::ServerConfig;
use toolwit_core::ToolContext;
use toolwit_core::limits::MCP_CONNECTIONS_MAX;
use toolwit_core::text::sha256;

/// The sessions of a server, at most [`MCP_CONNECTIONS_MAX`]. Callers whose contexts have different credentials have
/// different sessions.
pub(crate) struct SessionPool {
    pub(crate) config: Arc<ServerConfig>,
    options: ClientOptions,
    /// The sessions with their [caller digests](Self::caller_digest). The most recently used session is the last.
    sessions: Mutex<Vec<(String, Arc<ServerSession>)>>,
}

impl SessionPool {
    pub(crate) fn new(config: ServerConfig, options: ClientOptions) -> Self {
        Self {
            config: Arc::new(config),
            options,
            sessions: Mutex::default(),
        }
    }

    /// Returns the session of a caller, and creates it if necessary. If there are too many sessions, the least
    /// recently used one is disconnected and removed.
    pub(crate) fn session_of(&self, context: &ToolContext) -> Arc<ServerSession> {
        let caller_digest = self.caller_digest(context);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let session = match sessions.iter().position(|(digest, _)| *digest == caller_digest) {
            Some(position) => sessions.remove(position).1,
            None => Arc::new(ServerSession::new(self.config.clone(), self.options.clone())),
        };
        sessions.push((caller_digest, session.clone()));
        if sessions.len() > MCP_CONNECTIONS_MAX {
            let (_, least_recently_used) = sessions.remove(0);
            least_recently_used.disconnect();
        }
        session
    }

    /// Ends all connections, and removes their sessions.
    pub(crate) fn disconnect(&self) {
        let sessions = std::mem::take(&mut *self.sessions.lock().unwrap_or_else(PoisonError::into_inner));
        sessions.iter().for_each(|(_, session)| session.disconnect());
    }

    /// Returns the keys of the context values that the server's settings use. These values are credentials.
    pub(crate) fn credential_keys(&self) -> Vec<&str> {
        let settings = self.config.settings().into_iter();
        settings.flat_map(|(_, setting)| setting.context_keys()).collect()
    }

    /// Returns a digest of a caller's credentials, which identifies the caller. If no setting uses a context value, the
    /// digest is empty, and all callers share one session.
    pub(crate) fn caller_digest(&self, context: &ToolContext) -> String {
        let keys = self.credential_keys();
        if keys.is_empty() {
            return String::new();
        }
        let values: Vec<_> = keys.iter().map(|key| context.text(key)).collect();
        sha256(&serde_json::to_string(&values).unwrap_or_default())
    }
}
