//! The id of a run.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the runs of this process.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Makes an id that no other run of this process has, and hardly one of another process.
pub(super) fn fresh() -> String {
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    // The keys of a `RandomState` come from the operating system's randomness.
    let random = RandomState::new().hash_one(number);
    format!("{random:016x}-{number}")
}
