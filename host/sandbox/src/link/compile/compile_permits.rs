//! The permits that limit how many components are compiled at the same time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The minimum size of a component that is compiled alone, in bytes. The functions of one component are compiled in parallel on all
/// processors.
const COMPILE_ALONE_BYTES_MIN: u64 = 1 << 20;

/// Permits to compile, one for each processor of the machine. Small components are compiled in parallel. A large component is
/// compiled alone: two large components at once would slow each other down and use twice the memory.
pub(crate) struct CompilePermits {
    semaphore: Arc<Semaphore>,
    processors: u32,
}

impl Default for CompilePermits {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            semaphore: Arc::new(Semaphore::new(processors)),
            processors: u32::try_from(processors).unwrap_or(u32::MAX),
        }
    }
}

impl CompilePermits {
    /// Waits for the permits of a component of this size. Returns `None` only if the semaphore is closed, which never happens.
    pub(crate) async fn acquire(&self, component_bytes: u64) -> Option<OwnedSemaphorePermit> {
        let permits = if component_bytes >= COMPILE_ALONE_BYTES_MIN {
            self.processors
        } else {
            1
        };
        self.semaphore.clone().acquire_many_owned(permits).await.ok()
    }
}
