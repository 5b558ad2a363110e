//! Limits on the number and the memory of the requests that are not answered yet, and of their answers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::Extensions;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use toolwit::tool::text::{json_len, json_weight, json_weight_of};

/// The memory of a request in addition to its message: its task, its stream and its buffers.
const REQUEST_BASE_BYTES: usize = 16 << 10;

/// Memory is counted in units of this size, because a semaphore counts permits in 32 bits.
const UNIT_BYTES: usize = 1 << 10;

/// Limits the number and the memory of the requests that are not answered yet, and the memory of the answers that the
/// client has not read yet. Several clients can share these limits. Without limits, a client that sends requests without
/// waiting for the answers, or without reading them, could fill the memory of the host and block other clients.
pub(crate) struct PendingRequests {
    request_permits: Arc<Semaphore>,
    memory: Arc<Memory>,
}

/// The memory of all requests and answers.
#[derive(Debug)]
struct Memory {
    /// One permit for each [`UNIT_BYTES`] of memory.
    permits: Arc<Semaphore>,
    units_max: usize,
    /// The permit of an answer that may exceed the limit. At most one such answer waits until the client reads it.
    large_answer: Arc<Semaphore>,
}

/// A request that is not answered yet. Clones share the request. The request and its memory are counted until the last
/// clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct PendingRequest {
    _request_permit: Arc<OwnedSemaphorePermit>,
    held: Arc<HeldMemory>,
}

/// The memory that a request and its answer hold.
#[derive(Debug)]
struct HeldMemory {
    memory: Arc<Memory>,
    permits: Mutex<HeldPermits>,
}

#[derive(Debug)]
struct HeldPermits {
    units: OwnedSemaphorePermit,
    _large_answer: Option<OwnedSemaphorePermit>,
}

impl PendingRequest {
    /// Returns the pending request to which the extensions of a message belong, over standard input or HTTP.
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        let parts = extensions.get::<http::request::Parts>();
        let of_http = parts.and_then(|parts| parts.extensions.get());
        of_http.or_else(|| extensions.get())
    }

    /// Removes the pending request from the extensions of a message, because the work continues after the answer.
    pub(crate) fn remove_from(extensions: &mut Extensions) {
        extensions.remove::<Self>();
        if let Some(parts) = extensions.get_mut::<http::request::Parts>() {
            parts.extensions.remove::<Self>();
        }
    }

    /// Reserves memory for an answer, until the client has read it. The memory is that of the answer and of its text. Returns
    /// `false` if the requests and answers before it hold too much memory.
    ///
    /// An answer that needs more than half of all memory is still sent, if no other such answer is unread.
    pub(crate) fn reserve_answer(&self, answer: &impl Serialize) -> bool {
        let weight = usize::try_from(json_weight_of(answer)).unwrap_or(usize::MAX);
        let bytes = weight.saturating_add(json_len(answer));
        if bytes <= REQUEST_BASE_BYTES {
            return true;
        }
        let HeldMemory { memory, permits } = &*self.held;
        let mut permits = permits.lock().unwrap_or_else(PoisonError::into_inner);
        let needed_units = units(bytes);
        if let Ok(additional) = memory.permits.clone().try_acquire_many_owned(needed_units) {
            permits.units.merge(additional);
            return true;
        }
        let is_large = usize::try_from(needed_units).is_ok_and(|units| units > memory.units_max / 2);
        let Some(large_answer) = is_large
            .then(|| memory.large_answer.clone().try_acquire_owned().ok())
            .flatten()
        else {
            return false;
        };
        permits._large_answer = Some(large_answer);
        true
    }

    /// Stops counting the request, but keeps its memory reserved for `duration`. If the answer, with its length in `bytes`,
    /// is larger, reserves the difference too, as far as it is available.
    pub(crate) fn hold_answer(self, bytes: usize, duration: Duration) {
        let held = self.held.clone();
        drop(self);
        held.grow_to(bytes);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(duration).await;
                drop(held);
            });
        }
    }
}

impl HeldMemory {
    /// Reserves memory until `bytes` are held, as far as memory is available.
    fn grow_to(&self, bytes: usize) {
        let mut permits = self.permits.lock().unwrap_or_else(PoisonError::into_inner);
        let held_units = u32::try_from(permits.units.num_permits()).unwrap_or(u32::MAX);
        let available_units = u32::try_from(self.memory.permits.available_permits()).unwrap_or(u32::MAX);
        let additional_units = units(bytes).saturating_sub(held_units).min(available_units);
        if let Ok(additional) = self.memory.permits.clone().try_acquire_many_owned(additional_units) {
            permits.units.merge(additional);
        }
    }
}

impl PendingRequests {
    pub(crate) fn new(number_max: usize, memory_bytes_max: usize) -> Self {
        let units_max = memory_bytes_max / UNIT_BYTES;
        Self {
            request_permits: Arc::new(Semaphore::new(number_max)),
            memory: Arc::new(Memory {
                permits: Arc::new(Semaphore::new(units_max)),
                units_max,
                large_answer: Arc::new(Semaphore::new(1)),
            }),
        }
    }

    /// Counts a request, and reserves memory for a message of at most `bytes`. Returns `None` if too many requests are
    /// pending, or they hold too much memory.
    pub(crate) fn reserve(&self, bytes: usize) -> Option<PendingRequest> {
        let request_permit = self.request_permits.clone().try_acquire_owned().ok()?;
        let needed_units = units(bytes.saturating_add(REQUEST_BASE_BYTES));
        let units = self.memory.permits.clone().try_acquire_many_owned(needed_units).ok()?;
        let permits = HeldPermits {
            units,
            _large_answer: None,
        };
        Some(PendingRequest {
            _request_permit: Arc::new(request_permit),
            held: Arc::new(HeldMemory {
                memory: self.memory.clone(),
                permits: Mutex::new(permits),
            }),
        })
    }

    /// Adjusts the reserved memory of a request to its message, after the message was read. Returns `None` if the message
    /// needs more memory than is available.
    pub(crate) fn adjust(&self, request: PendingRequest, message: &[u8]) -> Option<PendingRequest> {
        let bytes = json_weight(message);
        let needed_units = units(bytes.saturating_add(REQUEST_BASE_BYTES));
        let needed_units = usize::try_from(needed_units).unwrap_or(usize::MAX);
        let mut permits = request.held.permits.lock().unwrap_or_else(PoisonError::into_inner);
        let held_units = permits.units.num_permits();
        if needed_units > held_units {
            let additional_units = u32::try_from(needed_units - held_units).ok()?;
            let additional = self
                .memory
                .permits
                .clone()
                .try_acquire_many_owned(additional_units)
                .ok()?;
            permits.units.merge(additional);
        } else {
            drop(permits.units.split(held_units - needed_units));
        }
        drop(permits);
        Some(request)
    }
}

/// Converts bytes to units of [`UNIT_BYTES`].
fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: G13
    #[tokio::test(start_paused = true)]
    async fn an_answer_that_a_session_keeps_holds_memory() {
        let pending = PendingRequests::new(1, 1 << 20);
        let request = pending.reserve(0).unwrap();
        request.hold_answer(600 << 10, Duration::from_secs(10));
        assert!(pending.reserve(500 << 10).is_none(), "the first answer holds 600 KiB");
        let request = pending.reserve(300 << 10).unwrap();
        request.hold_answer(4 << 20, Duration::from_secs(10));
        assert!(pending.reserve(0).is_none(), "all memory is held");
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert!(pending.reserve(900 << 10).is_some());
    }

    // attack: G11
    #[test]
    fn answers_that_are_not_read_hold_memory() {
        let pending = PendingRequests::new(8, 1 << 20);
        let requests: Vec<_> = (0..4).map(|_| pending.reserve(0).unwrap()).collect();
        let answer = "x".repeat(250 << 10);
        assert!(requests[0].reserve_answer(&answer));
        assert!(
            !requests[1].reserve_answer(&answer),
            "the first answer and its text need 500 KiB"
        );
        assert!(
            requests[1].reserve_answer(&"x".repeat(100 << 10)),
            "a smaller answer fits"
        );
        let clone = requests[0].clone();
        drop(requests);
        let request = pending.reserve(0).unwrap();
        assert!(!request.reserve_answer(&answer), "the first request still runs");
        drop(clone);
        assert!(request.reserve_answer(&answer));
    }

    // attack: G11
    #[test]
    fn one_answer_may_exceed_the_limit() {
        let pending = PendingRequests::new(8, 1 << 20);
        let (first, second) = (pending.reserve(0).unwrap(), pending.reserve(0).unwrap());
        let answer = "x".repeat(4 << 20);
        assert!(first.reserve_answer(&answer));
        assert!(!second.reserve_answer(&answer));
        drop(first);
        assert!(second.reserve_answer(&answer));
    }

    // attack: G11
    #[test]
    fn pending_requests_are_limited_in_number_and_memory() {
        let pending = PendingRequests::new(2, 1 << 20);
        let first = pending.reserve(0).unwrap();
        let second = pending.reserve(0).unwrap();
        assert!(pending.reserve(0).is_none(), "two requests are pending");
        drop(second);
        assert!(pending.reserve(1 << 20).is_none(), "the message needs all memory");
        let second = pending.reserve(900 << 10).unwrap();
        let many_values = format!("[{}]", "1,".repeat(5_000));
        assert!(
            pending.adjust(first, many_values.as_bytes()).is_none(),
            "parsed values need more memory than their text"
        );
        let second = pending.adjust(second, b"{}").unwrap();
        let first = pending.reserve(0).unwrap();
        assert!(
            pending.adjust(first, many_values.as_bytes()).is_some(),
            "the adjusted second request holds less memory"
        );
        drop(second);
    }
}
