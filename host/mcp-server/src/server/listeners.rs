//! The clients that receive a notification when tools, prompts or resources change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification};
use rmcp::service::{Peer, SubscriptionSink};
use tokio::sync::watch;

use super::deliveries::{Deliveries, send_to_session, send_to_subscription};
use crate::content::{FileStamp, ServedContent};
use crate::session::ClientSession;
use toolwit::Toolwit;
use toolwit::registry::Registry;

/// The interval between two checks for changes of the files behind resources.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The sessions and subscriptions that a server notifies of changes.
#[derive(Default)]
pub(super) struct Listeners {
    sessions: Mutex<Vec<SessionListener>>,
    subscriptions: Mutex<Subscriptions>,
}

/// The subscriptions of all clients, in the order in which they began. A subscription id of the protocol is unique only
/// within one client, so the server assigns its own keys.
#[derive(Default)]
struct Subscriptions {
    sinks: BTreeMap<SubscriptionKey, SubscriptionSink>,
    next_key: SubscriptionKey,
}

/// Identifies a subscription among those of all clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SubscriptionKey(u64);

/// A session, and the connection of its client.
#[derive(Clone)]
struct SessionListener {
    session: Weak<ClientSession>,
    peer: Peer<RoleServer>,
}

impl SessionListener {
    /// Updates the tools of the session to the newest packages. Returns whether the list of tools changed. A failure is
    /// logged, and counts as no change.
    async fn refresh(&self) -> bool {
        let Some(session) = self.session.upgrade() else {
            return false;
        };
        session.refresh().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the tools of a session cannot be updated");
            false
        })
    }

    fn is_subscribed(&self, uri: &str) -> bool {
        let session = self.session.upgrade();
        session.is_some_and(|session| session.is_subscribed(uri))
    }
}

impl Listeners {
    pub(super) fn add_session(&self, session: &Arc<ClientSession>, peer: Peer<RoleServer>) {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|listener| listener.session.strong_count() > 0 && !listener.peer.is_transport_closed());
        let session = Arc::downgrade(session);
        sessions.push(SessionListener { session, peer });
    }

    pub(super) fn add_subscription(&self, sink: SubscriptionSink) -> SubscriptionKey {
        let mut subscriptions = lock(&self.subscriptions);
        let key = subscriptions.next_key;
        subscriptions.next_key = SubscriptionKey(key.0 + 1);
        subscriptions.sinks.insert(key, sink);
        key
    }

    pub(super) fn remove_subscription(&self, key: SubscriptionKey) {
        lock(&self.subscriptions).sinks.remove(&key);
    }

    /// Notifies the clients of new packages: of changed resources, because the documentation of plugins is a resource, and
    /// of changed tools. A session is notified of changed tools only if its own list of tools changed.
    fn announce_tools(self: &Arc<Self>, deliveries: &mut Deliveries) {
        let tools = ServerNotification::ToolListChangedNotification(Default::default());
        let resources = ServerNotification::ResourceListChangedNotification(Default::default());
        self.notify_subscriptions(&[tools.clone(), resources.clone()], deliveries);
        for listener in self.sessions() {
            let (tools, resources) = (tools.clone(), resources.clone());
            deliveries.begin(async move {
                let mut notifications = vec![resources];
                if listener.refresh().await {
                    notifications.insert(0, tools);
                }
                send_to_session(&listener.peer, notifications).await;
            });
        }
    }

    /// Notifies all clients that the prompts and resources changed.
    fn announce_content(self: &Arc<Self>, deliveries: &mut Deliveries) {
        let notifications = [
            ServerNotification::PromptListChangedNotification(Default::default()),
            ServerNotification::ResourceListChangedNotification(Default::default()),
        ];
        self.notify_subscriptions(&notifications, deliveries);
        for listener in self.sessions() {
            let notifications = notifications.to_vec();
            deliveries.begin(async move { send_to_session(&listener.peer, notifications).await });
        }
    }

    /// Notifies each client of the changed resources to which it subscribed. The sink of a subscription drops the
    /// notifications of other resources.
    fn announce_resources(self: &Arc<Self>, uris: &[&str], deliveries: &mut Deliveries) {
        let notification = |uri: &&str| {
            let parameters = ResourceUpdatedNotificationParam::new(*uri);
            ServerNotification::ResourceUpdatedNotification(ResourceUpdatedNotification::new(parameters))
        };
        self.notify_subscriptions(&uris.iter().map(notification).collect::<Vec<_>>(), deliveries);
        for listener in self.sessions() {
            let subscribed = uris.iter().filter(|uri| listener.is_subscribed(uri));
            let notifications: Vec<_> = subscribed.map(notification).collect();
            if !notifications.is_empty() {
                deliveries.begin(async move { send_to_session(&listener.peer, notifications).await });
            }
        }
    }

    fn notify_subscriptions(self: &Arc<Self>, notifications: &[ServerNotification], deliveries: &mut Deliveries) {
        let sinks = lock(&self.subscriptions).sinks.clone();
        for (key, sink) in sinks {
            let (listeners, notifications) = (self.clone(), notifications.to_vec());
            deliveries.begin(async move {
                if !send_to_subscription(&sink, notifications).await {
                    listeners.remove_subscription(key);
                }
            });
        }
    }

    fn sessions(&self) -> Vec<SessionListener> {
        lock(&self.sessions).clone()
    }
}

/// Announces new content and changed files, until the listeners or the sender of the content are dropped.
pub(super) async fn follow_content(mut content: watch::Receiver<Arc<ServedContent>>, listeners: Weak<Listeners>) {
    let current = content.borrow_and_update().clone();
    let mut stamps = stamps_of(current).await;
    let mut deliveries = Deliveries::default();
    let mut interval = tokio::time::interval(FILE_CHECK_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let has_new_content = tokio::select! {
            changed = content.changed() => match changed {
                Ok(()) => true,
                Err(_) => return,
            },
            _ = interval.tick() => false,
        };
        let current = content.borrow_and_update().clone();
        let newest_stamps = stamps_of(current).await;
        let Some(listeners) = listeners.upgrade() else { return };
        if has_new_content {
            listeners.announce_content(&mut deliveries);
        }
        let changed = newest_stamps
            .iter()
            .filter(|(uri, stamp)| stamps.get(*uri).is_some_and(|earlier| earlier != *stamp));
        let changed: Vec<_> = changed.map(|(uri, _)| uri.as_str()).collect();
        if !changed.is_empty() {
            listeners.announce_resources(&changed, &mut deliveries);
        }
        stamps = newest_stamps;
    }
}

/// Returns the stamps of the files behind resources, by URI.
async fn stamps_of(content: Arc<ServedContent>) -> BTreeMap<String, FileStamp> {
    let stamps = tokio::task::spawn_blocking(move || content.stamps());
    // After a panic, the map is empty, so that no file counts as changed.
    stamps.await.unwrap_or_default()
}

/// Announces the changes of a host's packages, until the listeners or the live registry are dropped.
pub(super) async fn follow_packages(host: Toolwit, listeners: Weak<Listeners>) {
    let mut changes = host.live_registry().changes();
    let mut announced: Registry = host.registry();
    drop(host);
    let mut deliveries = Deliveries::default();
    while changes.changed().await.is_ok() {
        let Some(listeners) = listeners.upgrade() else { return };
        let current = changes.borrow_and_update().clone();
        if !current.is_same(&announced) {
            announced = current;
            listeners.announce_tools(&mut deliveries);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
