//! The notifications of a server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::mpsc;

/// The maximum number of progress notifications that are queued for a call. Further ones are dropped.
const PROGRESS_WAITING_MAX: usize = 16;

/// The effects of a server's notifications: whether its tools have changed, and the progress of calls. Clones share
/// them.
#[derive(Clone, Default)]
pub(super) struct Notices(Arc<NoticesState>);

#[derive(Default)]
struct NoticesState {
    have_tools_changed: AtomicBool,
    progress: Mutex<HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>>,
}

/// A subscription to the progress of one call. Dropping it ends the subscription.
pub(super) struct ProgressSubscription {
    notices: Notices,
    token: ProgressToken,
    notifications: mpsc::Receiver<ProgressNotificationParam>,
}

impl Notices {
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
        let (sender, notifications) = mpsc::channel(PROGRESS_WAITING_MAX);
        self.progress().insert(token.clone(), sender);
        ProgressSubscription {
            notices: self.clone(),
            token: token.clone(),
            notifications,
        }
    }

    /// Delivers progress to its call. Progress of an unknown call is dropped.
    pub(super) fn deliver_progress(&self, progress: ProgressNotificationParam) {
        if let Some(sender) = self.progress().get(&progress.progress_token) {
            drop(sender.try_send(progress));
        }
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>> {
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressSubscription {
    /// Returns the next progress notification. Waits forever after the last one.
    pub(super) async fn next(&mut self) -> ProgressNotificationParam {
        match self.notifications.recv().await {
            Some(progress) => progress,
            None => std::future::pending().await,
        }
    }

    /// Returns the next progress notification if it has already arrived.
    pub(super) fn try_next(&mut self) -> Option<ProgressNotificationParam> {
        self.notifications.try_recv().ok()
    }
}

impl Drop for ProgressSubscription {
    fn drop(&mut self) {
        self.notices.progress().remove(&self.token);
    }
}
