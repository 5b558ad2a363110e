//! What plugins keep for one conversation.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::component::Plugin;
use super::session::Session;

/// The session instances of one conversation. When the conversation drops it and its tools, they are gone.
#[derive(Default)]
pub struct Scope {
    conversation: ConversationNumber,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
}

/// Tells the conversations of this process apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConversationNumber(u64);

impl Default for ConversationNumber {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Scope {
    /// Makes the scope of a new conversation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells it from the other conversations of the process.
    pub(crate) fn conversation(&self) -> ConversationNumber {
        self.conversation
    }

    /// Returns the session of a plugin; all its tools in this conversation share it.
    pub(crate) fn session(&self, plugin: &Arc<Plugin>) -> Arc<Session> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        // Of a plugin that was replaced, the earlier session lives as long as the entities that hold it.
        let known = sessions
            .get(plugin.name())
            .filter(|known| Arc::ptr_eq(known.plugin(), plugin));
        if let Some(session) = known {
            return session.clone();
        }
        let session = Arc::new(Session::new(plugin.clone(), self.conversation));
        sessions.insert(plugin.name().to_owned(), session.clone());
        session
    }
}
