//! Limits on the number and the memory of the requests that are not answered yet.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use toolwit::tool::text::json_weight;

/// The memory of a request in addition to its message: its task, its stream and its buffers.
const REQUEST_BASE_BYTES: usize = 16 << 10;

/// Memory is counted in units of this size, because a semaphore counts permits in 32 bits.
const UNIT_BYTES: usize = 1 << 10;

/// Limits the number and the memory of the requests that are not answered yet. Several clients can share these limits.
/// Without limits, a client that sends requests without waiting for the answers could fill the memory of the host and
/// block other clients.
pub(crate) struct PendingRequests {
    request_permits: Arc<Semaphore>,
    /// One permit for each [`UNIT_BYTES`] of memory.
    memory_permits: Arc<Semaphore>,
}

/// A request that is not answered yet. The request and its memory are counted until this value is dropped.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    request_permit: OwnedSemaphorePermit,
    memory_permits: OwnedSemaphorePermit,
}

impl PendingRequest {
    /// Stops counting the request, but keeps its memory reserved for `duration`. If the answer, with its length in `bytes`,
    /// is larger, reserves the difference too, as far as it is available.
    pub(crate) fn hold_answer(self, bytes: usize, duration: Duration) {
        let Self {
            request_permit,
            mut memory_permits,
        } = self;
        drop(request_permit);
        let semaphore = memory_permits.semaphore().clone();
        let held_units = u32::try_from(memory_permits.num_permits()).unwrap_or(u32::MAX);
        let available_units = u32::try_from(semaphore.available_permits()).unwrap_or(u32::MAX);
        let additional_units = units(bytes).saturating_sub(held_units).min(available_units);
        if let Ok(additional) = semaphore.try_acquire_many_owned(additional_units) {
            memory_permits.merge(additional);
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(duration).await;
                drop(memory_permits);
            });
        }
    }
}

impl PendingRequests {
    pub(crate) fn new(number_max: usize, memory_bytes_max: usize) -> Self {
        Self {
            request_permits: Arc::new(Semaphore::new(number_max)),
            memory_permits: Arc::new(Semaphore::new(memory_bytes_max / UNIT_BYTES)),
        }
    }

    /// Counts a request, and reserves memory for a message of at most `bytes`. Returns `None` if too many requests are
    /// pending, or they hold too much memory.
    pub(crate) fn reserve(&self, bytes: usize) -> Option<PendingRequest> {
        let request_permit = self.request_permits.clone().try_acquire_owned().ok()?;
        let units = units(bytes.saturating_add(REQUEST_BASE_BYTES));
        let memory_permits = self.memory_permits.clone().try_acquire_many_owned(units).ok()?;
        Some(PendingRequest {
            request_permit,
            memory_permits,
        })
    }

    /// Adjusts the reserved memory of a request to its message, after the message was read. Returns `None` if the message
    /// needs more memory than is available.
    pub(crate) fn adjust(&self, mut request: PendingRequest, message: &[u8]) -> Option<PendingRequest> {
        let bytes = json_weight(message);
        let needed_units = units(bytes.saturating_add(REQUEST_BASE_BYTES));
        let needed_units = usize::try_from(needed_units).unwrap_or(usize::MAX);
        let held_units = request.memory_permits.num_permits();
        if needed_units > held_units {
            let additional_units = u32::try_from(needed_units - held_units).ok()?;
            let memory_permits = self.memory_permits.clone();
            let additional = memory_permits.try_acquire_many_owned(additional_units).ok()?;
            request.memory_permits.merge(additional);
        } else {
            drop(request.memory_permits.split(held_units - needed_units));
        }
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
