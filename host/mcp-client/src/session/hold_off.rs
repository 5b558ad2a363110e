//! The pause after a failure, in which a server is not contacted.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;

use toolwit_core::Error;

/// The time in which a server is not contacted after its first failure. It doubles with each further failure.
const HOLD_OFF_MIN: Duration = Duration::from_secs(1);

/// The maximum time in which a server is not contacted after a failure.
const HOLD_OFF_MAX: Duration = Duration::from_secs(60);

/// Refuses attempts to contact a server for some time after a failure.
#[derive(Default)]
pub(super) struct HoldOff {
    /// The pauses after the next failures.
    delays: Option<ExponentialBackoff>,
    /// The last failure, and the end of its pause.
    failure: Option<(Error, Instant)>,
}

impl HoldOff {
    /// Returns the last failure as the error, if the server must not be contacted yet.
    pub(super) fn check(&self) -> Result<(), Error> {
        match &self.failure {
            Some((error, until)) if Instant::now() < *until => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Records a failure.
    pub(super) fn record_failure(&mut self, error: Error) {
        let delays = self.delays.get_or_insert_with(|| {
            let builder = ExponentialBuilder::new()
                .with_min_delay(HOLD_OFF_MIN)
                .with_max_delay(HOLD_OFF_MAX);
            builder.without_max_times().build()
        });
        let delay = delays.next().unwrap_or(HOLD_OFF_MAX);
        self.failure = Some((error, Instant::now() + delay));
    }

    /// Records a success, which ends the pause.
    pub(super) fn record_success(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use toolwit_core::{ErrorKind, Phase};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_failure_doubles_the_time_until_the_next_attempt() {
        let mut hold_off = HoldOff::default();
        let failure = Error::new(ErrorKind::ToolUnavailable, Phase::Registry, "gone");
        for seconds in [1, 2, 4] {
            assert!(hold_off.check().is_ok());
            hold_off.record_failure(failure.clone());
            tokio::time::advance(Duration::from_millis(seconds * 1_000 - 1)).await;
            assert!(hold_off.check().is_err());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        hold_off.record_success();
        hold_off.record_failure(failure);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(hold_off.check().is_ok());
    }
}
