//! The delivery of notifications to clients.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ServerNotification;
use rmcp::service::{Peer, SubscriptionSendError, SubscriptionSink};
use tokio::task::JoinSet;

/// Maximum time of a delivery to a client. Notifications are small: a delivery takes longer only if the client has
/// stopped reading.
const DELIVERY_WALL_MAX: Duration = Duration::from_secs(5);

/// The tasks that send notifications. Each delivery has its own task, so that a client that has stopped reading does not
/// delay other clients. A client misses the notifications that it does not receive in time. Dropping this value aborts
/// the tasks.
#[derive(Default)]
pub(super) struct Deliveries(JoinSet<()>);

impl Deliveries {
    /// Begins a delivery, and removes the tasks that have ended.
    pub(super) fn begin(&mut self, delivery: impl Future<Output = ()> + Send + 'static) {
        while self.0.try_join_next().is_some() {}
        self.0.spawn(delivery);
    }
}

/// Sends notifications to the client of a session, in order.
pub(super) async fn send_to_session(peer: &Peer<RoleServer>, notifications: Vec<ServerNotification>) {
    let sent = tokio::time::timeout(DELIVERY_WALL_MAX, async {
        for notification in notifications {
            // Fails if the client has no open stream. Such a client misses the notification.
            drop(peer.send_notification(notification).await);
        }
    });
    if sent.await.is_err() {
        tracing::debug!("a client did not receive its notifications in time");
    }
}

/// Sends notifications to a subscription, in order. Returns `false` if the subscription has ended, and `true` after a
/// timeout.
pub(super) async fn send_to_subscription(sink: &SubscriptionSink, notifications: Vec<ServerNotification>) -> bool {
    let sent = tokio::time::timeout(DELIVERY_WALL_MAX, async {
        for notification in notifications {
            match sink.send(notification).await {
                Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => {}
                Err(_) => return false,
            }
        }
        true
    });
    sent.await.unwrap_or_else(|_| {
        tracing::debug!("a client did not receive the notifications of its subscription in time");
        true
    })
}
