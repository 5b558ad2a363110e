//! The clients that receive a notification when the tools change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rmcp::RoleServer;
use rmcp::service::{Peer, SubscriptionSink};

use crate::session::ClientSession;
use toolwit::Toolwit;
use toolwit::registry::Registry;

/// The sessions and subscriptions of a server.
#[derive(Default)]
pub(super) struct Listeners {
    sessions: Mutex<Vec<(Weak<ClientSession>, Peer<RoleServer>)>>,
    subscriptions: Mutex<Vec<SubscriptionSink>>,
}

impl Listeners {
    pub(super) fn add_session(&self, session: &Arc<ClientSession>, peer: Peer<RoleServer>) {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|(session, peer)| session.strong_count() > 0 && !peer.is_transport_closed());
        sessions.push((Arc::downgrade(session), peer));
    }

    pub(super) fn add_subscription(&self, sink: SubscriptionSink) {
        lock(&self.subscriptions).push(sink);
    }

    pub(super) fn remove_subscription(&self, ended: &SubscriptionSink) {
        lock(&self.subscriptions).retain(|sink| sink.id() != ended.id());
    }

    /// Tells all clients that the tools changed.
    async fn announce(&self) {
        let sessions = lock(&self.sessions).clone();
        for (session, peer) in sessions {
            let Some(session) = session.upgrade() else { continue };
            match session.follow().await {
                Ok(true) => drop(peer.notify_tool_list_changed().await),
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "the tools of a session cannot be updated"),
            }
        }
        let subscriptions = lock(&self.subscriptions).clone();
        for sink in subscriptions {
            if sink.notify_tool_list_changed().await.is_err() {
                self.remove_subscription(&sink);
            }
        }
    }
}

/// Announces the changes of a host's packages, as long as the listeners exist.
pub(super) async fn follow(host: Toolwit, listeners: Weak<Listeners>) {
    let mut changes = host.live_registry().changes();
    let mut known: Registry = host.registry();
    drop(host);
    while changes.changed().await.is_ok() {
        let Some(listeners) = listeners.upgrade() else { return };
        let current = changes.borrow_and_update().clone();
        if !current.is_same(&known) {
            known = current;
            listeners.announce().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
