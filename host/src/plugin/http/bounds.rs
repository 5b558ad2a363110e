//! What the requests of one call may use.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Bounds of the requests of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HttpBounds {
    pub(crate) requests_max: u32,
    /// Over all requests, both ways, headers and bodies.
    pub(crate) bytes_max: u64,
    /// One request, from the look-up of the name to the last byte.
    pub(crate) request_wall_max: Duration,
    pub(crate) first_byte_wall_max: Duration,
    pub(crate) between_bytes_wall_max: Duration,
    pub(crate) header_bytes_max: usize,
}

impl Default for HttpBounds {
    fn default() -> Self {
        Self {
            requests_max: 20,
            bytes_max: 16 << 20,
            request_wall_max: Duration::from_secs(20),
            first_byte_wall_max: Duration::from_secs(15),
            between_bytes_wall_max: Duration::from_secs(5),
            header_bytes_max: 64 << 10,
        }
    }
}

/// What is left of them.
#[derive(Debug)]
pub(crate) struct HttpBudget {
    pub(crate) bounds: HttpBounds,
    requests: AtomicU32,
    bytes: AtomicU64,
}

impl HttpBudget {
    pub(crate) fn new(bounds: HttpBounds) -> Self {
        Self {
            bounds,
            requests: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Takes one request. Returns whether there was one left.
    pub(crate) fn take_request(&self) -> bool {
        self.requests.fetch_add(1, Ordering::Relaxed) < self.bounds.requests_max
    }

    /// Takes bytes. Returns whether they fit.
    pub(crate) fn take_bytes(&self, bytes: usize) -> bool {
        let before = self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        before.saturating_add(bytes as u64) <= self.bounds.bytes_max
    }
}
