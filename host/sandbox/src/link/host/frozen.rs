//! Frozen clocks and repeatable randomness, so that a call can be replayed.

use std::time::Duration;

use sha2::{Digest, Sha256};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

/// The number of bytes that [`frozen_bytes`] returns. A guest that reads more random bytes receives the same bytes again.
const SEQUENCE_BYTES: usize = 16 << 10;

/// A wall clock that always returns the same time, in seconds since 1970, and a monotonic clock that always returns zero. A guest
/// that waits on a clock waits in real time, at most until the deadline of the call.
pub(crate) struct FrozenClock(pub(crate) u64);

impl HostWallClock for FrozenClock {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        Duration::from_secs(self.0)
    }
}

impl HostMonotonicClock for FrozenClock {
    fn resolution(&self) -> u64 {
        1_000_000_000
    }

    fn now(&self) -> u64 {
        0
    }
}

/// Derives random bytes from a seed and a purpose. The bytes are uniformly distributed but not secret.
pub(crate) fn frozen_bytes(seed: u64, purpose: &str) -> Vec<u8> {
    let block = |number: usize| Sha256::digest(format!("{purpose} {seed} {number}"));
    (0..SEQUENCE_BYTES / 32).flat_map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // attack: C20
    #[test]
    fn the_same_seed_and_purpose_give_the_same_bytes() {
        assert_eq!(frozen_bytes(7, "secure"), frozen_bytes(7, "secure"));
        assert_ne!(frozen_bytes(7, "secure"), frozen_bytes(8, "secure"));
        assert_ne!(frozen_bytes(7, "secure"), frozen_bytes(7, "insecure"));
    }
}
