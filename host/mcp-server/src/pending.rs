//! Requests that are not answered yet: their number, and the memory that they hold.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use toolwit::tool::text::json_weight;

/// The memory of a request without its message: its task, its stream and its buffers.
const REQUEST_BYTES: usize = 16 << 10;

/// Memory is counted in units of this size, because a semaphore has 32-bit permits.
const UNIT_BYTES: usize = 1 << 10;

/// The limits on the number and the memory of the requests that are not answered yet, for the clients that share them.
/// Without them, a client that does not wait for its answers could fill the memory of the host and block other clients.
pub(crate) struct PendingRequests {
    number: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

/// A request that is not answered yet. The request and its memory are counted until it is dropped.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    number: OwnedSemaphorePermit,
    memory: OwnedSemaphorePermit,
}

impl PendingRequest {
    /// Stops counting the request, but holds the memory of its answer for `time`. If too little memory is available,
    /// only the available memory is held.
    pub(crate) fn hold_answer(self, bytes: usize, time: Duration) {
        let Self { number, mut memory } = self;
        drop(number);
        let semaphore = memory.semaphore().clone();
        let held_units = u32::try_from(memory.num_permits()).unwrap_or(u32::MAX);
        let available_units = u32::try_from(semaphore.available_permits()).unwrap_or(u32::MAX);
        let additional_units = units(bytes).saturating_sub(held_units).min(available_units);
        if let Ok(additional) = semaphore.try_acquire_many_owned(additional_units) {
            memory.merge(additional);
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(time).await;
                drop(memory);
            });
        }
    }
}

impl PendingRequests {
    pub(crate) fn new(number_max: usize, memory_bytes_max: usize) -> Self {
        Self {
            number: Arc::new(Semaphore::new(number_max)),
            memory: Arc::new(Semaphore::new(memory_bytes_max / UNIT_BYTES)),
        }
    }

    /// Counts a request with a message of at most `bytes`. Returns `None` if too many requests are pending, or they
    /// hold too much memory.
    pub(crate) fn reserve(&self, bytes: usize) -> Option<PendingRequest> {
        let number = self.number.clone().try_acquire_owned().ok()?;
        let memory = self.memory.clone();
        let memory = memory
            .try_acquire_many_owned(units(bytes.saturating_add(REQUEST_BYTES)))
            .ok()?;
        Some(PendingRequest { number, memory })
    }

    /// Adjusts the memory of a request to its message, after the message was read. Returns `None` if the message needs
    /// more memory than is available.
    pub(crate) fn adjust(&self, mut request: PendingRequest, message: &[u8]) -> Option<PendingRequest> {
        let bytes = json_weight(message);
        let (needed_units, held_units) = (units(bytes.saturating_add(REQUEST_BYTES)), request.memory.num_permits());
        let needed_units = usize::try_from(needed_units).unwrap_or(usize::MAX);
        if needed_units > held_units {
            let additional_units = u32::try_from(needed_units - held_units).ok()?;
            request
                .memory
                .merge(self.memory.clone().try_acquire_many_owned(additional_units).ok()?);
        } else {
            drop(request.memory.split(held_units - needed_units));
        }
        Some(request)
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: G13
    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_kept_holds_memory() {
        let pending = PendingRequests::new(1, 1 << 20);
        let request = pending.reserve(0).unwrap();
        request.hold_answer(600 << 10, Duration::from_secs(10));
        assert!(pending.reserve(500 << 10).is_none(), "an answer is kept");
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
        assert!(pending.reserve(0).is_none(), "two are pending");
        drop(second);
        assert!(pending.reserve(1 << 20).is_none(), "a long message");
        let second = pending.reserve(900 << 10).unwrap();
        let parts = format!("[{}]", "1,".repeat(5_000));
        assert!(
            pending.adjust(first, parts.as_bytes()).is_none(),
            "parts take more than their text"
        );
        let second = pending.adjust(second, b"{}").unwrap();
        let first = pending.reserve(0).unwrap();
        assert!(
            pending.adjust(first, parts.as_bytes()).is_some(),
            "the second one was short"
        );
        drop(second);
    }
}
