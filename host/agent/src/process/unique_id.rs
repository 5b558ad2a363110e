//! Ids of runs, and of the processes that consist of the runs of one conversation; see [`AgentProcess`](super::AgentProcess).

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of ids that were created in this operating system process.
static ID_COUNT: AtomicU64 = AtomicU64::new(0);

/// Creates an id that is unique in this operating system process, and almost certainly across others.
pub(crate) fn new_unique_id() -> String {
    let number = ID_COUNT.fetch_add(1, Ordering::Relaxed);
    // The keys of a `RandomState` are random numbers from the operating system.
    let random = RandomState::new().hash_one(number);
    format!("{random:016x}-{number}")
}
