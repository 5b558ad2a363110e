//! The backoff after a failure: for some time, the server is not contacted.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;

use toolwit_core::Error;

/// The time in which a server is not contacted after its first failure. The time doubles with each further failure.
const BACKOFF_MIN: Duration = Duration::from_secs(1);

/// The maximum time in which a server is not contacted after a failure.
const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// Refuses attempts to contact a server for some time after a failure.
#[derive(Default)]
pub(super) struct Backoff {
    /// The delays after the next failures. `None` if there was no failure since the last success.
    delays: Option<ExponentialBackoff>,
    /// The last failure, and the end of its delay.
    failure: Option<(Error, Instant)>,
}

impl Backoff {
    /// Checks that the server may be contacted.
    ///
    /// # Errors
    /// The last failure, if its delay has not ended.
    pub(super) fn check(&self) -> Result<(), Error> {
        match &self.failure {
            Some((error, end)) if Instant::now() < *end => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Records a failure, which starts a delay.
    pub(super) fn record_failure(&mut self, error: Error) {
        let delays = self.delays.get_or_insert_with(|| {
            let builder = ExponentialBuilder::new()
                .with_min_delay(BACKOFF_MIN)
                .with_max_delay(BACKOFF_MAX);
            builder.without_max_times().build()
        });
        let delay = delays.next().unwrap_or(BACKOFF_MAX);
        self.failure = Some((error, Instant::now() + delay));
    }

    /// Records a success. The delay after the next failure is then the minimum.
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
        let mut backoff = Backoff::default();
        let failure = Error::new(ErrorKind::ToolUnavailable, Phase::Registry, "gone");
        for seconds in [1, 2, 4] {
            assert!(backoff.check().is_ok());
            backoff.record_failure(failure.clone());
            tokio::time::advance(Duration::from_millis(seconds * 1_000 - 1)).await;
            assert!(backoff.check().is_err());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        backoff.record_success();
        backoff.record_failure(failure);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(backoff.check().is_ok());
    }
}
