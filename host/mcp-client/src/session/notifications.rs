//! The notifications that a server sends on one connection.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::mpsc;

/// The maximum number of progress notifications in the queue of a call. Further notifications are dropped.
const PROGRESS_QUEUE_MAX: usize = 16;

/// Records the notification that the tools have changed, and passes progress notifications to the calls that wait for
/// them. Clones share the record and the waiting calls.
#[derive(Clone, Default)]
pub(super) struct Notifications(Arc<SharedNotifications>);

#[derive(Default)]
struct SharedNotifications {
    have_tools_changed: AtomicBool,
    progress_senders: Mutex<HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>>,
}

/// A subscription to the progress of one call. Dropping it ends the subscription.
pub(super) struct ProgressSubscription {
    notifications: Notifications,
    token: ProgressToken,
    receiver: mpsc::Receiver<ProgressNotificationParam>,
}

impl Notifications {
    /// Records that the list of tools must be read again, because it has changed or could not be read.
    pub(super) fn mark_tools_changed(&self) {
        self.0.have_tools_changed.store(true, Ordering::Release);
    }

    /// Returns whether the list of tools must be read again.
    pub(super) fn have_tools_changed(&self) -> bool {
        self.0.have_tools_changed.load(Ordering::Acquire)
    }

    /// Forgets reported changes, because the list of tools is about to be read.
    pub(super) fn clear_tools_changed(&self) {
        self.0.have_tools_changed.store(false, Ordering::Release);
    }

    /// Subscribes to the progress of a request.
    pub(super) fn subscribe(&self, token: &ProgressToken) -> ProgressSubscription {
        let (sender, receiver) = mpsc::channel(PROGRESS_QUEUE_MAX);
        self.progress_senders().insert(token.clone(), sender);
        ProgressSubscription {
            notifications: self.clone(),
            token: token.clone(),
            receiver,
        }
    }

    /// Passes a progress notification to its call. A notification for an unknown call is dropped.
    pub(super) fn deliver_progress(&self, progress: ProgressNotificationParam) {
        if let Some(sender) = self.progress_senders().get(&progress.progress_token) {
            drop(sender.try_send(progress));
        }
    }

    fn progress_senders(&self) -> MutexGuard<'_, HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>> {
        self.0.progress_senders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressSubscription {
    /// Returns the next progress notification. Waits forever after the last one.
    pub(super) async fn next(&mut self) -> ProgressNotificationParam {
        match self.receiver.recv().await {
            Some(progress) => progress,
            None => std::future::pending().await,
        }
    }

    /// Returns the next progress notification if it has already arrived.
    pub(super) fn try_next(&mut self) -> Option<ProgressNotificationParam> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for ProgressSubscription {
    fn drop(&mut self) {
        self.notifications.progress_senders().remove(&self.token);
    }
}
