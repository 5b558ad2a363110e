//! What ends a run from outside: the caller, or the clock.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::failure::RunFailure;

/// What a deadline beyond the clock's range stands for: thirty years.
const FAR_FUTURE: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// The caller's wish to stop and the run's deadline, as one signal. Dropped, it cancels what the run began.
pub(super) struct Stop {
    conversation: CancellationToken,
    turn: CancellationToken,
    run: CancellationToken,
    deadline: Instant,
    wall_max: Duration,
    _cancel_on_drop: DropGuard,
}

impl Stop {
    /// Listens to the conversation's token and the turn's, which may be the same.
    pub(super) fn new(conversation: &CancellationToken, turn: &CancellationToken, wall_max: Duration) -> Self {
        let run = turn.child_token();
        let now = Instant::now();
        Self {
            conversation: conversation.clone(),
            turn: turn.clone(),
            deadline: now.checked_add(wall_max).unwrap_or(now + FAR_FUTURE),
            wall_max,
            _cancel_on_drop: run.clone().drop_guard(),
            run,
        }
    }

    /// The token that tools and the model get.
    pub(super) fn token(&self) -> &CancellationToken {
        &self.run
    }

    /// Waits until the run must stop; from then on the token is cancelled.
    pub(super) async fn requested(&self) -> RunFailure {
        let failure = tokio::select! {
            biased;
            () = self.conversation.cancelled() => RunFailure::Cancelled,
            () = self.turn.cancelled() => RunFailure::Cancelled,
            () = sleep_until(self.deadline) => RunFailure::WallClockLimit { max: self.wall_max },
        };
        self.run.cancel();
        failure
    }
}
