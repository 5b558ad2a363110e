//! Who may compile at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A component of this size keeps every processor busy by itself: its functions are compiled side by side.
const ALONE_BYTES: u64 = 1 << 20;

/// The processors, as far as compiling is concerned. Small components are compiled side by side, a large one alone: two at
/// once would only make each other slower, and take the memory of both.
pub(crate) struct Workers {
    free: Arc<Semaphore>,
    all: u32,
}

impl Default for Workers {
    fn default() -> Self {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            free: Arc::new(Semaphore::new(all)),
            all: u32::try_from(all).unwrap_or(u32::MAX),
        }
    }
}

impl Workers {
    /// Waits for as many processors as a component of this size needs. `None` when the host is going down.
    pub(crate) async fn slot(&self, component_bytes: u64) -> Option<OwnedSemaphorePermit> {
        let wanted = if component_bytes >= ALONE_BYTES { self.all } else { 1 };
        self.free.clone().acquire_many_owned(wanted).await.ok()
    }
}
