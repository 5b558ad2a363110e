//! The state of plugins in one conversation: their session instances, and the tools that the conversation may use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

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
    /// The sessions by the name of the plugin.
    sessions: Arc<Mutex<HashMap<String, PluginSessions>>>,
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
        let existing = sessions.get_mut(plugin.name());
        if let Some(existing) = &existing
            && Arc::ptr_eq(existing.newest.plugin(), plugin)
        {
            return existing.newest.clone();
        }
        // A plugin that replaced another plugin of the same name gets a new session. The entities of the replaced plugin keep the
        // old session alive until the conversation moves to the new version.
        let session = Arc::new(Session::new(plugin.clone(), self.policy.clone(), gatherer));
        match existing {
            Some(existing) => {
                if plugin.inspection().shape.keeps_state && existing.newest.had_state() {
                    session.report_loss();
                }
                existing.replace_newest(session.clone());
            }
            None => {
                let first = PluginSessions {
                    newest: session.clone(),
                    earlier: Vec::new(),
                };
                sessions.insert(plugin.name().to_owned(), first);
            }
        }
        session
    }

    /// Drops the instances of other versions of a plugin, with their entities: from now on, the conversation uses this version.
    /// A call of a method of such an entity fails with [`ErrorKind::EntityGone`](toolwit_core::ErrorKind::EntityGone).
    pub fn use_version(&self, plugin: &Arc<Plugin>) {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(existing) = sessions.get(plugin.name()) else {
            return;
        };
        let earlier = existing.earlier.iter().filter_map(Weak::upgrade);
        let all = earlier.chain([existing.newest.clone()]);
        all.filter(|session| !Arc::ptr_eq(session.plugin(), plugin))
            .for_each(|session| session.retire());
    }
}

/// The sessions of the versions of one plugin in a conversation.
struct PluginSessions {
    /// The session of the version that was used last.
    newest: Arc<Session>,
    /// The sessions of earlier versions, as long as the conversation has their tools.
    earlier: Vec<Weak<Session>>,
}

impl PluginSessions {
    fn replace_newest(&mut self, newest: Arc<Session>) {
        let earlier = std::mem::replace(&mut self.newest, newest);
        self.earlier.retain(|session| session.strong_count() > 0);
        self.earlier.push(Arc::downgrade(&earlier));
    }
}
