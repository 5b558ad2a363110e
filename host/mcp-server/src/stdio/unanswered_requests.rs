//! The requests of a client that are not answered yet.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::pending::PendingRequest;
use toolwit::tool::DeferredWork;

/// A request that is not answered yet.
pub(super) struct UnansweredRequest {
    /// Counts the request towards the limits of the connection's
    /// [`PendingRequests`](crate::pending::PendingRequests).
    pub(super) pending: PendingRequest,
    /// The work that the call defers until it is answered.
    pub(super) deferred_work: DeferredWork,
    /// Cancels the call if it is one of the [`DirectCalls`](super::direct_calls::DirectCalls). The protocol library
    /// cancels other requests.
    pub(super) cancel: CancellationToken,
}

/// The requests that are not answered yet, by their ids as JSON text.
#[derive(Default)]
pub(super) struct UnansweredRequests {
    requests: Mutex<HashMap<String, UnansweredRequest>>,
    /// Is notified when a request is removed.
    removed: Notify,
}

impl UnansweredRequests {
    /// Returns the number of unanswered requests.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns whether an unanswered request has this id. The id is JSON text.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    /// Adds a request. Its id is JSON text.
    pub(super) fn insert(&self, id: String, request: UnansweredRequest) {
        self.lock().insert(id, request);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, UnansweredRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a request that has been answered or cancelled. Returns the work that its call deferred.
    pub(super) fn remove(&self, id: &RequestId) -> Option<DeferredWork> {
        let id = serde_json::to_string(id).unwrap_or_default();
        let request = self.lock().remove(&id);
        self.removed.notify_one();
        let UnansweredRequest {
            pending, deferred_work, ..
        } = request?;
        drop(pending);
        Some(deferred_work)
    }

    /// Returns the token that cancels the direct call of a request, or `None` if no unanswered request has this id.
    pub(super) fn cancel_token(&self, id: &RequestId) -> Option<CancellationToken> {
        let id = serde_json::to_string(id).unwrap_or_default();
        self.lock().get(&id).map(|request| request.cancel.clone())
    }

    /// Removes a request, so that its direct call is not answered, and cancels the call.
    pub(super) fn cancel(&self, id: &RequestId) {
        if let Some(cancel) = self.cancel_token(id) {
            drop(self.remove(id));
            cancel.cancel();
        }
    }

    /// Waits until every request is answered or cancelled.
    pub(super) async fn wait_until_empty(&self) {
        while !self.lock().is_empty() {
            self.removed.notified().await;
        }
    }
}
