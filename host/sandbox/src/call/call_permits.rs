//! The permits that limit how many calls of a plugin run at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::link::compile::link_once::cancelled_before_start;
use crate::link::host::host_api::CallStack;
use toolwit_core::limits::CallLimits;
use toolwit_core::{DeferredWork, DeferredWorkHandle, Error, ErrorKind, Phase, ToolContext};

/// The permits of a plugin's calls. Clones share them.
#[derive(Clone)]
pub(crate) struct CallPermits {
    semaphore: Arc<Semaphore>,
    queue: Arc<Mutex<PermitQueue>>,
}

/// The calls that wait for a permit, and the work that holds permits of ended calls.
#[derive(Default)]
struct PermitQueue {
    /// The number of calls that wait.
    waiting_count: usize,
    /// The work of ended calls that is deferred until their answers have been delivered.
    deferred: Vec<DeferredWorkHandle>,
}

/// Counts a call that waits for a permit, until it is dropped.
struct WaitingCall<'a>(&'a CallPermits);

/// A permit to run a call. Dropping the permit makes it available again.
pub(crate) struct CallPermit {
    /// The time that the call waited for the permit.
    pub(crate) waiting_time: Duration,
    /// `None` for a nested call, which runs under the permit of the outermost call.
    permit: Option<OwnedSemaphorePermit>,
    queue: Arc<Mutex<PermitQueue>>,
}

impl CallPermit {
    /// Runs the remaining work of an ended call, and then makes the permit available.
    ///
    /// With a [`DeferredWork`] in the context, the work begins after the answer has been delivered, or earlier if another call
    /// waits for a permit. Without one, the work runs at once, because waking another thread for it would take longer. For a
    /// nested call, which has no permit of its own, `work` is dropped and does not run.
    pub(crate) fn release_after(self, context: &ToolContext, work: impl FnOnce() + Send + 'static) {
        let Some(permit) = self.permit else { return };
        let work = move || {
            work();
            drop(permit);
        };
        let Some(deferred_work) = DeferredWork::of(context) else {
            work();
            return;
        };
        if let Some(deferred) = deferred_work.defer(work) {
            let due = lock(&self.queue).add(deferred);
            due.iter().for_each(DeferredWorkHandle::run);
        }
    }
}

impl CallPermits {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            semaphore: Arc::new(Semaphore::new(count)),
            queue: Arc::default(),
        }
    }

    /// Waits for a permit. A nested call runs under the permit of the outermost call, because calls that hold one permit and
    /// wait for a second could deadlock.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] if the call is cancelled, and [`ErrorKind::Busy`] if no permit becomes available within
    /// `wall_max`.
    pub(crate) async fn acquire(&self, context: &ToolContext, limits: &CallLimits) -> Result<CallPermit, Error> {
        if context.cancel().is_cancelled() {
            return Err(cancelled_before_start());
        }
        if CallStack::of(context).is_some() {
            return Ok(self.permit(None, Duration::ZERO));
        }
        if let Ok(permit) = self.semaphore.clone().try_acquire_owned() {
            return Ok(self.permit(Some(permit), Duration::ZERO));
        }
        let started = Instant::now();
        // Boxed, because it rarely runs and would enlarge the future of every call.
        let permit = Box::pin(self.acquire_in_turn(context, limits)).await?;
        Ok(self.permit(Some(permit), started.elapsed()))
    }

    async fn acquire_in_turn(&self, context: &ToolContext, limits: &CallLimits) -> Result<OwnedSemaphorePermit, Error> {
        let _waiting = WaitingCall::start(self);
        let semaphore = self.semaphore.clone();
        tokio::select! {
            biased;
            () = context.cancel().cancelled() => Err(cancelled_before_start()),
            permit = semaphore.acquire_owned() => permit.map_err(|_| busy_error()),
            () = tokio::time::sleep(limits.wall_max) => Err(busy_error()),
        }
    }
}

impl CallPermits {
    fn permit(&self, permit: Option<OwnedSemaphorePermit>, waiting_time: Duration) -> CallPermit {
        CallPermit {
            waiting_time,
            permit,
            queue: self.queue.clone(),
        }
    }
}

impl PermitQueue {
    /// Adds work that is deferred until an answer is delivered. If a call waits for a permit, returns all deferred work, which
    /// must run now.
    fn add(&mut self, deferred: DeferredWorkHandle) -> Vec<DeferredWorkHandle> {
        self.deferred.retain(|other| !other.has_begun());
        self.deferred.push(deferred);
        if self.waiting_count > 0 {
            std::mem::take(&mut self.deferred)
        } else {
            Vec::new()
        }
    }
}

impl<'a> WaitingCall<'a> {
    /// Counts a call, and runs the deferred work, which holds permits.
    fn start(permits: &'a CallPermits) -> Self {
        let due = {
            let mut queue = lock(&permits.queue);
            queue.waiting_count += 1;
            std::mem::take(&mut queue.deferred)
        };
        let waiting_call = Self(permits);
        due.iter().for_each(DeferredWorkHandle::run);
        waiting_call
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        lock(&self.0.queue).waiting_count -= 1;
    }
}

fn lock(queue: &Mutex<PermitQueue>) -> MutexGuard<'_, PermitQueue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

fn busy_error() -> Error {
    Error::new(
        ErrorKind::Busy,
        Phase::Execute,
        "too many calls of this plugin are running",
    )
    .with_suggestion("call again when other calls have ended")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    async fn acquire(permits: &CallPermits) -> CallPermit {
        let acquired = permits.acquire(&ToolContext::new(), &CallLimits::default()).await;
        acquired.ok().unwrap()
    }

    fn deferring_context() -> (DeferredWork, ToolContext) {
        let deferred_work = DeferredWork::new();
        let context = ToolContext::new().with_extension(deferred_work.clone());
        (deferred_work, context)
    }

    #[tokio::test]
    async fn a_permit_is_available_after_the_deferred_work() {
        let (permits, (deferred_work, context)) = (CallPermits::new(1), deferring_context());
        acquire(&permits).await.release_after(&context, || {});
        assert_eq!(permits.semaphore.available_permits(), 0);
        deferred_work.run();
        assert_eq!(permits.semaphore.available_permits(), 1);
        acquire(&permits).await.release_after(&context, || {});
        acquire(&permits).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_call_starts_before_the_answer_of_another_call_is_delivered() {
        let (permits, (_deferred_work, context)) = (CallPermits::new(1), deferring_context());
        acquire(&permits).await.release_after(&context, || {});
        let permit = acquire(&permits).await;
        let (second_permit, ()) = tokio::join!(acquire(&permits), async {
            tokio::task::yield_now().await;
            permit.release_after(&context, || {});
        });
        assert!(second_permit.permit.is_some());
    }

    #[tokio::test]
    async fn a_permit_is_available_when_the_context_is_dropped_before_the_answer() {
        let (permits, (deferred_work, context)) = (CallPermits::new(1), deferring_context());
        acquire(&permits).await.release_after(&context, || {});
        drop((deferred_work, context));
        assert_eq!(permits.semaphore.available_permits(), 1);
    }
}
