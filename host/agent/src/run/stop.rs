//! Cancellation and deadline of a run.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::outcome::RunFailure;
use toolwit_core::WallClock;

/// The cancellation tokens and the deadline of a run as one signal. Dropping the signal cancels the calls and
/// inferences of the run.
pub(super) struct StopSignal {
    conversation: CancellationToken,
    turn: CancellationToken,
    run: CancellationToken,
    clock: Arc<WallClock>,
    wall_max: Duration,
    _cancel_on_drop: DropGuard,
}

impl StopSignal {
    /// Creates a signal that observes the conversation's token and the turn's token, which may be the same.
    pub(super) fn new(
        conversation: &CancellationToken,
        turn: &CancellationToken,
        clock: Arc<WallClock>,
        wall_max: Duration,
    ) -> Self {
        let run = turn.child_token();
        Self {
            conversation: conversation.clone(),
            turn: turn.clone(),
            clock,
            wall_max,
            _cancel_on_drop: run.clone().drop_guard(),
            run,
        }
    }

    /// Returns the token that tools and the model receive.
    pub(super) fn token(&self) -> &CancellationToken {
        &self.run
    }

    /// Returns whether the run was cancelled from outside.
    pub(super) fn is_cancelled(&self) -> bool {
        self.conversation.is_cancelled() || self.turn.is_cancelled()
    }

    /// Waits until the run must stop, then cancels the run's token.
    pub(super) async fn wait(&self) -> RunFailure {
        let failure = tokio::select! {
            biased;
            () = self.conversation.cancelled() => RunFailure::Cancelled,
            () = self.turn.cancelled() => RunFailure::Cancelled,
            () = self.clock.wait_for_limit(self.wall_max) => RunFailure::WallClockLimit { max: self.wall_max },
        };
        self.run.cancel();
        failure
    }
}
