//! The clients that receive a notification when tools, prompts or resources change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification};
use rmcp::service::{Peer, SubscriptionSendError, SubscriptionSink};
use tokio::sync::watch;

use crate::content::ServedContent;
use crate::session::ClientSession;
use toolwit::Toolwit;
use toolwit::registry::Registry;

/// The interval at which the files behind resources are compared.
const FILES_INTERVAL: Duration = Duration::from_secs(2);

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

    /// Notifies all clients that the tools changed, and with them the documentation of plugins.
    async fn announce_tools(&self) {
        let sessions = lock(&self.sessions).clone();
        for (session, peer) in sessions {
            let Some(session) = session.upgrade() else { continue };
            match session.follow().await {
                Ok(true) => drop(peer.notify_tool_list_changed().await),
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "the tools of a session cannot be updated"),
            }
        }
        self.to_subscriptions(ServerNotification::ToolListChangedNotification(Default::default()))
            .await;
        self.to_all(ServerNotification::ResourceListChangedNotification(Default::default()))
            .await;
    }

    /// Notifies all clients that the prompts and resources changed.
    async fn announce_content(&self) {
        self.to_all(ServerNotification::PromptListChangedNotification(Default::default()))
            .await;
        self.to_all(ServerNotification::ResourceListChangedNotification(Default::default()))
            .await;
    }

    /// Notifies the clients that subscribed to a resource that the resource changed.
    async fn announce_resource(&self, uri: &str) {
        let updated = ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri));
        let updated = ServerNotification::ResourceUpdatedNotification(updated);
        self.to_sessions(&updated, |session| session.is_subscribed(uri)).await;
        self.to_subscriptions(updated).await;
    }

    async fn to_all(&self, notification: ServerNotification) {
        self.to_sessions(&notification, |_| true).await;
        self.to_subscriptions(notification).await;
    }

    async fn to_sessions(&self, notification: &ServerNotification, has_interest: impl Fn(&ClientSession) -> bool) {
        let sessions = lock(&self.sessions).clone();
        for (session, peer) in sessions {
            if session.upgrade().is_some_and(|session| has_interest(&session)) {
                drop(peer.send_notification(notification.clone()).await);
            }
        }
    }

    async fn to_subscriptions(&self, notification: ServerNotification) {
        let subscriptions = lock(&self.subscriptions).clone();
        for sink in subscriptions {
            match sink.send(notification.clone()).await {
                Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => {}
                Err(_) => self.remove_subscription(&sink),
            }
        }
    }
}

/// Announces new content and changed files, as long as the listeners exist.
pub(super) async fn follow_content(mut content: watch::Receiver<Arc<ServedContent>>, listeners: Weak<Listeners>) {
    let mut stamps = content.borrow_and_update().stamps();
    let mut interval = tokio::time::interval(FILES_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let has_new_content = tokio::select! {
            changed = content.changed() => match changed {
                Ok(()) => true,
                Err(_) => return,
            },
            _ = interval.tick() => false,
        };
        let Some(listeners) = listeners.upgrade() else { return };
        let current = content.borrow_and_update().clone();
        let newest = current.stamps();
        if has_new_content {
            listeners.announce_content().await;
        }
        for (uri, stamp) in &newest {
            if stamps.get(uri).is_some_and(|known| known != stamp) {
                listeners.announce_resource(uri).await;
            }
        }
        stamps = newest;
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
            listeners.announce_tools().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
