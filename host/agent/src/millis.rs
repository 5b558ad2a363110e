//! Durations as numbers in events and results.

use std::time::Duration;

/// Returns a duration in milliseconds, as events and results carry it.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
