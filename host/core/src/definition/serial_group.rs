//! Numbers of groups whose calls run sequentially.

use std::sync::atomic::{AtomicU64, Ordering};

/// The next number. These numbers count down from the largest; those of plugin sessions count up from one.
static NEXT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Returns a number for [`Tool::serial_group`](crate::Tool::serial_group), unique in the process.
#[must_use]
pub fn new_serial_group() -> u64 {
    NEXT.fetch_sub(1, Ordering::Relaxed)
}
