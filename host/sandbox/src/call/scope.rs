//! What plugins keep for one conversation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::session::Session;
use crate::grants::authority::ConversationNumber;
use crate::plugin::Plugin;
use toolwit_core::ToolId;

/// The session instances of one conversation. When the conversation drops it and its tools, they are gone.
#[derive(Default)]
pub struct Scope {
    confines: Confines,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
}

/// Whose a tool is, and what else that conversation may use.
#[derive(Clone, Default)]
pub(crate) struct Confines {
    conversation: ConversationNumber,
    /// `None` for all tools.
    may_use: Option<Arc<MayUse>>,
}

type MayUse = dyn Fn(&str) -> bool + Send + Sync;

impl Confines {
    pub(crate) fn conversation(&self) -> ConversationNumber {
        self.conversation
    }

    /// Tells whether the conversation may use a tool. A method of an entity has one id, whichever instance it acts on.
    pub(crate) fn may_use(&self, tool: impl FnOnce() -> ToolId) -> bool {
        self.may_use.as_ref().is_none_or(|may_use| may_use(tool().as_str()))
    }
}

impl Scope {
    /// Makes the scope of a new conversation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves out the methods of entities whose id `may_use` refuses, such as `crm/shop:crm/customers#[method]customer.delete`,
    /// and lets no tool hand work over to one that it refuses. Which tools there are from the start is said where they are
    /// listed.
    #[must_use]
    pub fn restricted_to(mut self, may_use: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.confines.may_use = Some(match self.confines.may_use.take() {
            Some(earlier) => Arc::new(move |tool: &str| earlier(tool) && may_use(tool)),
            None => Arc::new(may_use),
        });
        self
    }

    pub(crate) fn confines(&self) -> &Confines {
        &self.confines
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
        let session = Arc::new(Session::new(plugin.clone(), self.confines.clone()));
        sessions.insert(plugin.name().to_owned(), session.clone());
        session
    }
}
