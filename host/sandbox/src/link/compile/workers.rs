//! The processors that compilation may use.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The size in bytes from which a component uses all processors, since its functions are compiled in parallel.
const ALONE_BYTES: u64 = 1 << 20;

/// Permits to compile, one for each processor of the machine. Small components are compiled in parallel, and a large one alone:
/// two large ones at once would slow each other down and use twice the memory.
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
    /// Waits for the permits of a component of this size. Returns `None` if the runtime shuts down.
    pub(crate) async fn acquire(&self, component_bytes: u64) -> Option<OwnedSemaphorePermit> {
        let wanted = if component_bytes >= ALONE_BYTES { self.all } else { 1 };
        self.free.clone().acquire_many_owned(wanted).await.ok()
    }
}
