//! The state of plugins in one conversation: their session instances, and the tools that the conversation may use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::plugin::Plugin;
use super::session::Session;
use super::session_call::ResourceGatherer;
use crate::grants::authority::ConversationNumber;
use toolwit_core::ToolId;

/// The session instances of one conversation, and the tools that the conversation may use. Clones share the instances. An
/// instance is dropped at the latest when the scope, its clones and all tools that were created from them are dropped.
#[derive(Clone, Default)]
pub struct Scope {
    policy: ConversationPolicy,
    sessions: Arc<Mutex<HashMap<String, Arc<Session>>>>,
}

/// The number of a conversation, and the tools that the conversation may use.
#[derive(Clone, Default)]
pub(crate) struct ConversationPolicy {
    conversation: ConversationNumber,
    /// The filter of the tools. `None` permits all tools.
    tool_filter: Option<Arc<ToolFilter>>,
}

/// A function that returns whether the tool with an id may be used.
type ToolFilter = dyn Fn(&str) -> bool + Send + Sync;

impl ConversationPolicy {
    pub(crate) fn conversation(&self) -> ConversationNumber {
        self.conversation
    }

    /// Returns whether the conversation may use a tool. For a method, `id` returns the id without the entity.
    pub(crate) fn may_use(&self, id: impl FnOnce() -> ToolId) -> bool {
        self.tool_filter.as_ref().is_none_or(|filter| filter(id().as_str()))
    }
}

impl Scope {
    /// Creates the scope of a new conversation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Restricts the conversation to the tools for whose id `may_use` returns `true`. An example of an id is
    /// `crm/shop:crm/customers#[method]customer.delete`. If a scope is restricted twice, both functions must return `true`.
    ///
    /// The restriction applies to the methods of entities and to the tools of follow-up calls, but not to [`Plugin::tools`]:
    /// the caller filters the tools with which the conversation starts.
    #[must_use]
    pub fn restricted_to(mut self, may_use: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.policy.tool_filter = Some(match self.policy.tool_filter.take() {
            Some(earlier) => Arc::new(move |id: &str| earlier(id) && may_use(id)),
            None => Arc::new(may_use),
        });
        self
    }

    pub(crate) fn policy(&self) -> &ConversationPolicy {
        &self.policy
    }

    /// Returns the session of a plugin. All tools of the plugin in this conversation share the session.
    pub(crate) fn session(&self, plugin: &Arc<Plugin>, gatherer: &'static dyn ResourceGatherer) -> Arc<Session> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        // A plugin that replaced another plugin of the same name gets a new session. The entities of the replaced plugin keep the
        // old session alive.
        let existing = sessions
            .get(plugin.name())
            .filter(|session| Arc::ptr_eq(session.plugin(), plugin));
        if let Some(session) = existing {
            return session.clone();
        }
        let session = Arc::new(Session::new(plugin.clone(), self.policy.clone(), gatherer));
        sessions.insert(plugin.name().to_owned(), session.clone());
        session
    }
}
