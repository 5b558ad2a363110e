//! The processors that compiling may use.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A component of this size uses every processor: its functions are compiled in parallel.
const ALONE_BYTES: u64 = 1 << 20;

/// The processors of the machine, as permits to compile. Small components are compiled in parallel, a large one alone: two
/// large ones at once would slow each other down and use twice the memory.
pub(crate) struct CompileWorkers {
    free: Arc<Semaphore>,
    all: u32,
}

impl Default for CompileWorkers {
    fn default() -> Self {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            free: Arc::new(Semaphore::new(all)),
            all: u32::try_from(all).unwrap_or(u32::MAX),
        }
    }
}

impl CompileWorkers {
    /// Waits for as many processors as a component of this size uses. Returns `None` if the runtime shuts down.
    pub(crate) async fn acquire(&self, component_bytes: u64) -> Option<OwnedSemaphorePermit> {
        let wanted = if component_bytes >= ALONE_BYTES { self.all } else { 1 };
        self.free.clone().acquire_many_owned(wanted).await.ok()
    }
}
