//! How often, and after which waits, a request is repeated.

use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::header::HeaderMap;

/// Says how a request is repeated that a provider was too busy for, or that did not reach it.
///
/// Waits double from `wait_ms_first` to `wait_ms_max`, each with up to as much again by chance, so that many clients do
/// not return at once. A provider's `retry-after` takes the place of a wait. All waits together stay within
/// `wait_ms_total`: a request that the provider does not want before that fails at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How often a request is repeated after it failed. Default 3: what lasts longer is an outage.
    pub retries_max: u32,
    /// The first wait. Default 500 ms.
    pub wait_ms_first: u64,
    /// The longest wait that is not asked for by the provider. Default 8 s.
    pub wait_ms_max: u64,
    /// All waits together. Default 60 s: rate limits are counted by the minute.
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
    /// Never repeats a request.
    #[must_use]
    pub fn never() -> Self {
        Self {
            retries_max: 0,
            ..Self::default()
        }
    }

    pub(super) fn waits(self) -> Waits {
        let backoff = ExponentialBuilder::new()
            .with_min_delay(Duration::from_millis(self.wait_ms_first))
            .with_max_delay(Duration::from_millis(self.wait_ms_max))
            .with_max_times(usize::try_from(self.retries_max).unwrap_or(usize::MAX))
            .with_jitter();
        Waits {
            backoff: backoff.build(),
            left: Duration::from_millis(self.wait_ms_total),
        }
    }
}

/// The waits of one request.
pub(super) struct Waits {
    backoff: ExponentialBackoff,
    left: Duration,
}

impl Waits {
    /// Returns how long to wait before the request is repeated, or nothing when it is not.
    pub(super) fn next(&mut self, retry_after: Option<Duration>) -> Option<Duration> {
        let wait = self.backoff.next()?;
        let wait = retry_after.unwrap_or(wait);
        self.left = self.left.checked_sub(wait)?;
        Some(wait)
    }
}

/// Reads how long the provider asks to wait: seconds or a date, or milliseconds as some send; junk counts as nothing.
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn after(name: &'static str, value: &str) -> Option<Duration> {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
        retry_after(&headers, now)
    }

    // attack: F5
    #[test]
    fn seconds_and_dates_are_read_and_junk_is_ignored() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(after("retry-after", "7"), seconds(7));
        assert_eq!(after("retry-after", " 0.5 "), Some(Duration::from_millis(500)));
        assert_eq!(after("retry-after", "86400"), seconds(86_400));
        assert_eq!(after("retry-after", "Sun, 06 Nov 1994 08:49:57 GMT"), seconds(20));
        assert_eq!(after("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), seconds(0));
        assert_eq!(after("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        for junk in ["-1", "soon", "", "NaN", "inf", "1e300", "Sun, 99 Nov 1994"] {
            assert_eq!(after("retry-after", junk), None, "{junk}");
        }
        assert_eq!(after("retry-after-ms", "-1"), None);
    }

    // attack: F5
    #[test]
    fn waits_are_bounded_in_number_and_in_sum() {
        let policy = RetryPolicy::default();
        let mut waits = policy.waits();
        let all: Vec<_> = std::iter::from_fn(|| waits.next(None)).collect();
        assert_eq!(all.len(), 3);
        for (wait, base) in all.iter().zip([500, 1_000, 2_000]) {
            let base = Duration::from_millis(base);
            assert!((base..=base * 2).contains(wait), "{wait:?}");
        }
        let minute = Duration::from_secs(60);
        assert_eq!(policy.waits().next(Some(minute)), Some(minute));
        assert_eq!(policy.waits().next(Some(Duration::from_secs(86_400))), None);
        let mut waits = policy.waits();
        assert!(waits.next(Some(minute / 2)).is_some());
        assert_eq!(waits.next(Some(minute)), None, "the sum counts");
        assert_eq!(RetryPolicy::never().waits().next(Some(Duration::ZERO)), None);
    }
}
