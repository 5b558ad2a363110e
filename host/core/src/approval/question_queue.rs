//! The questions that wait for an approver who answers one at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Mutex, MutexGuard};

/// The order of the questions to a sequential approver.
#[derive(Debug, Default)]
pub(super) struct QuestionQueue {
    /// Locked while a question is open.
    turn: Mutex<()>,
    /// The number of calls that wait for their turn.
    waiting: AtomicUsize,
}

impl QuestionQueue {
    /// Waits until no earlier question is open. Then yields to the runtime once, so that calls that started at the same time
    /// begin to wait, and [`waiting_count`](Self::waiting_count) includes them.
    pub(super) async fn wait_for_turn(&self) -> MutexGuard<'_, ()> {
        let waiting_call = WaitingCall::new(&self.waiting);
        let turn = self.turn.lock().await;
        drop(waiting_call);
        tokio::task::yield_now().await;
        turn
    }

    /// Returns the number of calls that wait for their turn.
    pub(super) fn waiting_count(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// A call that is counted until its turn comes or its wait is cancelled.
struct WaitingCall<'q>(&'q AtomicUsize);

impl<'q> WaitingCall<'q> {
    fn new(waiting: &'q AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
