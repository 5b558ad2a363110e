//! Limits on the rate of requests.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A limit on requests per minute. It is a token bucket: the bucket holds at most the requests of one minute, and is
/// refilled at a constant rate.
pub(super) struct RateLimit {
    per_minute: f64,
    /// The number of requests in the bucket, and the time of the last refill.
    bucket: Mutex<(f64, Instant)>,
}

impl RateLimit {
    pub(super) fn per_minute(requests: u32) -> Self {
        let requests = f64::from(requests);
        Self {
            per_minute: requests,
            bucket: Mutex::new((requests, Instant::now())),
        }
    }

    /// Takes one request from the bucket.
    ///
    /// # Errors
    /// The time until the next request is possible, if the bucket is empty.
    pub(super) fn take(&self) -> Result<(), Duration> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let (remaining, refilled_at) = *bucket;
        let now = Instant::now();
        let minutes = now.duration_since(refilled_at).as_secs_f64() / 60.0;
        let remaining = minutes.mul_add(self.per_minute, remaining).min(self.per_minute);
        if remaining < 1.0 {
            *bucket = (remaining, now);
            let wait = (1.0 - remaining) / self.per_minute * 60.0;
            return Err(Duration::try_from_secs_f64(wait).unwrap_or(Duration::from_secs(60)));
        }
        *bucket = (remaining - 1.0, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_full_bucket_allows_a_burst_and_then_a_constant_rate() {
        let limit = RateLimit::per_minute(2);
        assert_eq!((limit.take(), limit.take()), (Ok(()), Ok(())));
        assert_eq!(limit.take(), Err(Duration::from_secs(30)));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(limit.take(), Ok(()));
        assert!(limit.take().is_err());
    }
}
