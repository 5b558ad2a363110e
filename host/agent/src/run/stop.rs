//! Cancellation and deadline of a run.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::outcome::RunFailure;
use toolwit_core::WallClock;

/// The combined signal of the cancellation tokens and the deadline of a run. Dropping the signal cancels the calls and
/// inferences of the run.
pub(super) struct StopSignal {
    conversation_token: CancellationToken,
    turn_token: CancellationToken,
    /// The token that the calls and inferences of the run receive.
    run_token: CancellationToken,
    clock: Arc<WallClock>,
    wall_max: Duration,
    _cancel_on_drop: DropGuard,
}

impl StopSignal {
    /// Creates a signal that observes the tokens of the conversation and of the turn. Both may be the same token.
    pub(super) fn new(
        conversation_token: &CancellationToken,
        turn_token: &CancellationToken,
        clock: Arc<WallClock>,
        wall_max: Duration,
    ) -> Self {
        let run_token = turn_token.child_token();
        Self {
            conversation_token: conversation_token.clone(),
            turn_token: turn_token.clone(),
            clock,
            wall_max,
            _cancel_on_drop: run_token.clone().drop_guard(),
            run_token,
        }
    }

    /// Returns the token that tools and the model receive.
    pub(super) fn token(&self) -> &CancellationToken {
        &self.run_token
    }

    /// Returns whether the conversation or the turn was cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.conversation_token.is_cancelled() || self.turn_token.is_cancelled()
    }

    /// Waits until the run must stop, then cancels the run's token. Returns the reason why the run stops.
    pub(super) async fn wait(&self) -> RunFailure {
        let failure = tokio::select! {
            biased;
            () = self.conversation_token.cancelled() => RunFailure::Cancelled,
            () = self.turn_token.cancelled() => RunFailure::Cancelled,
            () = self.clock.wait_for_limit(self.wall_max) => RunFailure::WallClockLimit { max: self.wall_max },
        };
        self.run_token.cancel();
        failure
    }
}
