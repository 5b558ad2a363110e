//! Suspends a run, so that another process can continue it.

use std::sync::Arc;

use crate::journal::{Journal, JournalError};

/// A handle that suspends a run, so that another process can continue it, for example after a person has decided about a call.
#[derive(Clone)]
pub struct Suspension(pub(super) Arc<Journal>);

impl Suspension {
    /// Stores the run in its current state, as if the process ended here. After that, no request and no call begins.
    ///
    /// Call this method first, then drop the future of the run and the conversation. If the future is dropped first, the run
    /// ends as cancelled and cannot be continued.
    ///
    /// [`Conversation::resume_run`](crate::Conversation::resume_run) continues the run in a conversation that is built with the
    /// same session.
    ///
    /// A call that is running counts as interrupted: its outcome is not stored.
    ///
    /// # Errors
    /// [`JournalError::Store`] if the run cannot be stored, and [`JournalError::Suspended`] if it is suspended already.
    pub async fn suspend(&self) -> Result<(), JournalError> {
        self.0.suspend().await
    }
}
