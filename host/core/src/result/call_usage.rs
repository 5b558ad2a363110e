//! The resources that a call used.

use std::time::Duration;

/// The resources that a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallUsage {
    /// Fuel that the guest consumed.
    pub fuel: u64,
    /// Time from the start of instantiation to the end of the call.
    pub wall: Duration,
    /// Time in the queue before that.
    pub queued: Duration,
    /// Peak memory of the instance, in bytes.
    pub memory_bytes: u64,
}
