//! The retry policy of requests.

use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::header::HeaderMap;
use tracing::debug;

use super::failure::AttemptFailure;
use toolwit_agent::model::ModelError;

/// The policy for retries of a request that failed for a reason that may be temporary, such as an overloaded or unreachable
/// provider. A request is also retried if its connection attempt timed out, but not if its response did not arrive in time.
///
/// The waits between attempts double from `wait_ms_first` to `wait_ms_max`. Each wait is extended by a random amount of up to
/// its own length, so that many clients do not retry at the same time. A header `retry-after` or `retry-after-ms` of the
/// provider replaces a wait. If the sum of all waits would exceed `wait_ms_total`, the request fails immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The maximum number of retries of a request. The default is 3: a failure that persists longer is probably an outage.
    pub retries_max: u32,
    /// The first wait. The default is 500 ms.
    pub wait_ms_first: u64,
    /// The longest wait without its random extension. A wait that the provider requests may be longer. The default is 8 s.
    pub wait_ms_max: u64,
    /// The maximum sum of all waits. The default is 60 s, since rate limits usually apply per minute.
    pub wait_ms_total: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries_max: 3,
            wait_ms_first: 500,
            wait_ms_max: 8_000,
            wait_ms_total: 60_000,
        }
    }
}

impl RetryPolicy {
    /// Creates a policy without retries.
    #[must_use]
    pub fn never() -> Self {
        Self {
            retries_max: 0,
            ..Self::default()
        }
    }

    /// Returns a counter of the attempts of one request. The count starts at the first attempt.
    pub(crate) fn attempts(self) -> Attempts {
        Attempts {
            waits: self.waits(),
            count: 1,
        }
    }

    fn waits(self) -> Waits {
        let backoff = ExponentialBuilder::new()
            .with_min_delay(Duration::from_millis(self.wait_ms_first))
            .with_max_delay(Duration::from_millis(self.wait_ms_max))
            .with_max_times(usize::try_from(self.retries_max).unwrap_or(usize::MAX))
            .with_jitter();
        Waits {
            backoff: backoff.build(),
            remaining: Duration::from_millis(self.wait_ms_total),
        }
    }
}

/// A counter of the attempts of one request, with the waits between them.
pub(crate) struct Attempts {
    waits: Waits,
    /// The number of attempts, including the current one.
    count: u32,
}

impl Attempts {
    /// Waits before the next attempt, after the current one has failed.
    ///
    /// # Errors
    /// The error of the request, if a retry cannot help or the policy does not allow another retry.
    pub(crate) async fn wait_after(&mut self, failure: AttemptFailure) -> Result<(), ModelError> {
        let wait = match &failure {
            AttemptFailure::Transient { retry_after, .. } => self.waits.next(*retry_after),
            AttemptFailure::TimedOut { .. } | AttemptFailure::Permanent(_) => None,
        };
        let Some(wait) = wait else {
            return Err(failure.into_error(self.count));
        };
        debug!(
            attempts = self.count,
            ?wait,
            ?failure,
            "retrying the request to the provider"
        );
        tokio::time::sleep(wait).await;
        self.count += 1;
        Ok(())
    }

    /// Returns the error of the request after a failure that must not be retried.
    pub(crate) fn give_up(self, failure: AttemptFailure) -> ModelError {
        failure.into_error(self.count)
    }
}

/// The waits of one request.
struct Waits {
    backoff: ExponentialBackoff,
    /// The part of [`RetryPolicy::wait_ms_total`] that has not been waited yet.
    remaining: Duration,
}

impl Waits {
    /// Returns the wait before the next retry, or `None` if the policy does not allow another retry.
    fn next(&mut self, retry_after: Option<Duration>) -> Option<Duration> {
        let backoff = self.backoff.next()?;
        let wait = retry_after.unwrap_or(backoff);
        self.remaining = self.remaining.checked_sub(wait)?;
        Some(wait)
    }
}

/// Parses the wait that the provider requests in `retry-after-ms`, in milliseconds, or in `retry-after`, in seconds or as a date.
/// Returns `None` without a valid header.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let millis = text("retry-after-ms").and_then(|text| text.parse().ok());
    if let Some(millis) = millis {
        return Some(Duration::from_millis(millis));
    }
    let text = text("retry-after")?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// Returns whether the provider asks for a retry in the header `x-should-retry`, which OpenAI and Anthropic send. Returns `None`
/// without a valid header.
pub(super) fn retry_advice(headers: &HeaderMap) -> Option<bool> {
    match headers.get("x-should-retry")?.to_str().ok()?.trim() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse_wait(name: &'static str, value: &str) -> Option<Duration> {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
        retry_after(&headers, now)
    }

    // attack: F5
    #[test]
    fn seconds_and_dates_are_parsed_and_invalid_values_are_ignored() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(parse_wait("retry-after", "7"), seconds(7));
        assert_eq!(parse_wait("retry-after", " 0.5 "), Some(Duration::from_millis(500)));
        assert_eq!(parse_wait("retry-after", "86400"), seconds(86_400));
        assert_eq!(parse_wait("retry-after", "Sun, 06 Nov 1994 08:49:57 GMT"), seconds(20));
        assert_eq!(parse_wait("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), seconds(0));
        assert_eq!(parse_wait("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        for invalid in ["-1", "soon", "", "NaN", "inf", "1e300", "Sun, 99 Nov 1994"] {
            assert_eq!(parse_wait("retry-after", invalid), None, "{invalid}");
        }
        assert_eq!(parse_wait("retry-after-ms", "-1"), None);
    }

    // attack: F5
    #[test]
    fn waits_are_limited_in_number_and_in_sum() {
        let policy = RetryPolicy::default();
        let mut waits = policy.waits();
        let all_waits: Vec<_> = std::iter::from_fn(|| waits.next(None)).collect();
        assert_eq!(all_waits.len(), 3);
        for (wait, base) in all_waits.iter().zip([500, 1_000, 2_000]) {
            let base = Duration::from_millis(base);
            assert!((base..=base * 2).contains(wait), "{wait:?}");
        }
        let minute = Duration::from_secs(60);
        assert_eq!(policy.waits().next(Some(minute)), Some(minute));
        assert_eq!(policy.waits().next(Some(Duration::from_secs(86_400))), None);
        let mut waits = policy.waits();
        assert!(waits.next(Some(minute / 2)).is_some());
        assert_eq!(waits.next(Some(minute)), None, "the sum is limited");
        assert_eq!(RetryPolicy::never().waits().next(Some(Duration::ZERO)), None);
    }
}
