//! Numbers of serial groups: the calls of all tools of a group run sequentially.

use std::sync::atomic::{AtomicU64, Ordering};

/// The next number. It counts down from the maximum, because the numbers of plugin sessions count up from one.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(u64::MAX);

/// Returns a number for [`Tool::serial_group`](crate::Tool::serial_group), unique in the process.
#[must_use]
pub fn new_serial_group() -> u64 {
    NEXT_NUMBER.fetch_sub(1, Ordering::Relaxed)
}
