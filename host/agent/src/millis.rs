//! Durations as numbers of milliseconds.

use std::time::Duration;

/// Returns a duration in milliseconds, or `u64::MAX` if it is longer.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
