//! What ends a run from outside: the caller, or the clock.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::failure::RunFailure;

/// What a deadline beyond the clock's range stands for: thirty years.
const FAR_FUTURE: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// The caller's wish to stop and the run's deadline, as one signal. Dropped, it cancels what the run began.
pub(super) struct Stop {
    caller: CancellationToken,
    run: CancellationToken,
    deadline: Instant,
    wall_max: Duration,
    _cancel_on_drop: DropGuard,
}

impl Stop {
    pub(super) fn new(caller: &CancellationToken, wall_max: Duration) -> Self {
        let run = caller.child_token();
        let now = Instant::now();
        Self {
            caller: caller.clone(),
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
            () = self.caller.cancelled() => RunFailure::Cancelled,
            () = sleep_until(self.deadline) => RunFailure::WallClockLimit { max: self.wall_max },
        };
        self.run.cancel();
        failure
    }
}
