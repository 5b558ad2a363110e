//! What the requests of one call may use.

use std::sync::Arc;
use std::time::Duration;

use crate::call::tally::{Full, Tally};
use toolwit_core::limits::CallLimits;

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

impl HttpBounds {
    pub(crate) fn of(limits: &CallLimits) -> Self {
        Self {
            requests_max: limits.http_requests_max,
            bytes_max: limits.http_bytes_max,
            request_wall_max: Duration::from_secs(20),
            first_byte_wall_max: Duration::from_secs(15),
            between_bytes_wall_max: Duration::from_secs(5),
            header_bytes_max: 64 << 10,
        }
    }
}

/// What is left of them, for the call and those inside it.
#[derive(Debug)]
pub(crate) struct HttpBudget {
    pub(crate) bounds: HttpBounds,
    requests: Arc<Tally>,
    bytes: Arc<Tally>,
}

impl HttpBudget {
    /// Makes the budget of a call. What a call inside another uses is taken from both.
    pub(crate) fn new(bounds: HttpBounds, outer: Option<&Self>) -> Self {
        let inside = |max: u64, outer: Option<&Arc<Tally>>| Arc::new(Tally::new(max, outer.cloned()));
        Self {
            bounds,
            requests: inside(bounds.requests_max.into(), outer.map(|outer| &outer.requests)),
            bytes: inside(bounds.bytes_max, outer.map(|outer| &outer.bytes)),
        }
    }

    /// Takes one request.
    pub(crate) fn take_request(&self) -> Result<(), Full> {
        self.requests.take(1)
    }

    /// Takes bytes.
    pub(crate) fn take_bytes(&self, bytes: usize) -> Result<(), Full> {
        self.bytes.take(bytes as u64)
    }
}
