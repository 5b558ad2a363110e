//! Suspends a run, so that another process can continue it.

use std::sync::Arc;

use crate::journal::{Journal, JournalError};

/// A handle that suspends a run, so that another process can continue it, such as one in which a person answers a question
/// about a call.
#[derive(Clone)]
pub struct Suspension(pub(super) Arc<Journal>);

impl Suspension {
    /// Stores the run as it is now, as if the process ended here. After that, no request and no call begins.
    /// Call this method first, then drop the future of the run and the conversation. If the future is dropped first, the run
    /// ends instead.
    ///
    /// [`Conversation::resume_run`](crate::Conversation::resume_run) continues the run in a conversation that is built with the
    /// same session.
    ///
    /// A call that runs now counts as interrupted: its outcome is not stored.
    ///
    /// # Errors
    /// [`JournalError::Store`] if the run cannot be stored, or is suspended already.
    pub async fn suspend(&self) -> Result<(), JournalError> {
        self.0.suspend().await
    }
}
