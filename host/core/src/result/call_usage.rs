//! Resource usage of calls.

use std::time::Duration;

/// The resources that a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallUsage {
    /// Fuel that the guest consumed.
    pub fuel: u64,
    /// Wall-clock time of the call, including its instantiation, but not the time in `queued`.
    pub wall: Duration,
    /// Time that the call waited before it started, for example for other calls of the plugin.
    pub queued: Duration,
    /// Peak memory of the instance, in bytes.
    pub memory_bytes: u64,
}

impl CallUsage {
    /// Returns the usage of this call and a later call together: the sums, and the higher memory peak.
    #[must_use]
    pub fn followed_by(self, next: Self) -> Self {
        Self {
            fuel: self.fuel.saturating_add(next.fuel),
            wall: self.wall.saturating_add(next.wall),
            queued: self.queued.saturating_add(next.queued),
            memory_bytes: self.memory_bytes.max(next.memory_bytes),
        }
    }
}
