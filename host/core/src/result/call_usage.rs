//! The resources that a call used.

use std::time::Duration;

/// What a call cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallUsage {
    /// Fuel that the guest burnt.
    pub fuel: u64,
    /// From the start of the instance to the end of the call.
    pub wall: Duration,
    /// Waiting for a free place before that.
    pub queued: Duration,
    /// The most memory that the instance held, in bytes.
    pub memory_bytes: u64,
}
