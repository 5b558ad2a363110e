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
    /// Counts the request until it is answered.
    pub(super) pending: PendingRequest,
    pub(super) deferred_work: DeferredWork,
    /// Cancels the call if it is answered directly.
    pub(super) cancel: CancellationToken,
}

/// The requests that are not answered yet, by their ids as JSON text.
#[derive(Default)]
pub(super) struct UnansweredRequests {
    ids: Mutex<HashMap<String, UnansweredRequest>>,
    answered: Notify,
}

impl UnansweredRequests {
    /// Returns the number of unanswered requests.
    pub(super) fn len(&self) -> usize {
        self.ids().len()
    }

    /// Returns whether a request with this id is not answered.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.ids().contains_key(id)
    }

    pub(super) fn insert(&self, id: String, request: UnansweredRequest) {
        self.ids().insert(id, request);
    }

    fn ids(&self) -> MutexGuard<'_, HashMap<String, UnansweredRequest>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a request that has been answered or cancelled. Returns the work that was deferred until the answer.
    pub(super) fn remove(&self, id: &RequestId) -> Option<DeferredWork> {
        let id = serde_json::to_string(id).unwrap_or_default();
        let request = self.ids().remove(&id);
        self.answered.notify_one();
        let UnansweredRequest {
            pending, deferred_work, ..
        } = request?;
        drop(pending);
        Some(deferred_work)
    }

    /// Returns the token that cancels a request, or `None` if the request needs no answer.
    pub(super) fn cancel_token(&self, id: &RequestId) -> Option<CancellationToken> {
        let id = serde_json::to_string(id).unwrap_or_default();
        self.ids().get(&id).map(|request| request.cancel.clone())
    }

    /// Cancels a request and removes it, so that it is not answered.
    pub(super) fn cancel(&self, id: &RequestId) {
        if let Some(cancel) = self.cancel_token(id) {
            drop(self.remove(id));
            cancel.cancel();
        }
    }

    /// Waits until every request is answered.
    pub(super) async fn wait_until_empty(&self) {
        while !self.ids().is_empty() {
            self.answered.notified().await;
        }
    }
}
