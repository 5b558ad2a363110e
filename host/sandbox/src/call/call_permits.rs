//! The permits that limit how many calls of a plugin run at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::link::compile::link_once::cancelled_before_start;
use crate::link::host::host_api::CallStack;
use toolwit_core::limits::CallLimits;
use toolwit_core::{DeferredWork, DeferredWorkHandle, Error, ErrorKind, Phase, ToolContext};

/// The permits of a plugin's calls. Clones share the permits.
#[derive(Clone)]
pub(crate) struct CallPermits {
    semaphore: Arc<Semaphore>,
    deferred_releases: Arc<Mutex<DeferredReleases>>,
}

/// The deferred work of ended calls, which still holds their permits, and the number of calls that wait for a permit.
#[derive(Default)]
struct DeferredReleases {
    /// The number of calls that wait for a permit.
    waiting_count: usize,
    /// The work that is deferred until the answers of the ended calls have been delivered.
    work: Vec<DeferredWorkHandle>,
}

/// Counts one call that waits for a permit, until the guard is dropped.
struct WaitingCallGuard<'a>(&'a CallPermits);

/// A permit to run a call. Dropping the permit makes it available again.
pub(crate) struct CallPermit {
    /// The time that the call waited for the permit.
    pub(crate) waiting_time: Duration,
    /// `None` for a nested call, which runs under the permit of the outermost call.
    permit: Option<OwnedSemaphorePermit>,
    deferred_releases: Arc<Mutex<DeferredReleases>>,
}

impl CallPermit {
    /// Runs the remaining work of an ended call, and then makes the permit available.
    ///
    /// If the context has a [`DeferredWork`], the work begins after the answer has been delivered, or earlier if another call
    /// waits for a permit. Otherwise, the work runs at once, because waking another thread for the work would take longer. For a
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
        if let Some(handle) = deferred_work.defer(work) {
            let due_work = lock(&self.deferred_releases).add(handle);
            due_work.iter().for_each(DeferredWorkHandle::run);
        }
    }
}

impl CallPermits {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            semaphore: Arc::new(Semaphore::new(count)),
            deferred_releases: Arc::default(),
        }
    }

    /// Waits for a permit. A nested call runs under the permit of the outermost call, because calls that hold one permit and
    /// wait for a second could deadlock.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] if the call is cancelled, and [`ErrorKind::Busy`] if no permit becomes available within
    /// `wall_max`.
    pub(crate) async fn acquire(&self, context: &ToolContext, limits: &CallLimits) -> Result<CallPermit, Error> {
        if context.cancel_token().is_cancelled() {
            return Err(cancelled_before_start());
        }
        if CallStack::of(context).is_some() {
            return Ok(self.call_permit(None, Duration::ZERO));
        }
        if let Ok(permit) = self.semaphore.clone().try_acquire_owned() {
            return Ok(self.call_permit(Some(permit), Duration::ZERO));
        }
        let started = Instant::now();
        // Boxed, because this future rarely runs and would enlarge the future of every call.
        let permit = Box::pin(self.acquire_in_turn(context, limits)).await?;
        Ok(self.call_permit(Some(permit), started.elapsed()))
    }

    /// Waits until one of the running calls releases its permit.
    async fn acquire_in_turn(&self, context: &ToolContext, limits: &CallLimits) -> Result<OwnedSemaphorePermit, Error> {
        let _waiting_call = WaitingCallGuard::start(self);
        let semaphore = self.semaphore.clone();
        tokio::select! {
            biased;
            () = context.cancel_token().cancelled() => Err(cancelled_before_start()),
            permit = semaphore.acquire_owned() => permit.map_err(|_| busy_error()),
            () = tokio::time::sleep(limits.wall_max) => Err(busy_error()),
        }
    }
}

impl CallPermits {
    fn call_permit(&self, permit: Option<OwnedSemaphorePermit>, waiting_time: Duration) -> CallPermit {
        CallPermit {
            waiting_time,
            permit,
            deferred_releases: self.deferred_releases.clone(),
        }
    }
}

impl DeferredReleases {
    /// Adds deferred work. Returns the work that must run now: all deferred work if a call waits for a permit, none otherwise.
    fn add(&mut self, new_work: DeferredWorkHandle) -> Vec<DeferredWorkHandle> {
        self.work.retain(|handle| !handle.has_begun());
        self.work.push(new_work);
        if self.waiting_count > 0 {
            std::mem::take(&mut self.work)
        } else {
            Vec::new()
        }
    }
}

impl<'a> WaitingCallGuard<'a> {
    /// Counts a waiting call. Then runs all deferred work, because this work holds permits.
    fn start(permits: &'a CallPermits) -> Self {
        let due_work = {
            let mut releases = lock(&permits.deferred_releases);
            releases.waiting_count += 1;
            std::mem::take(&mut releases.work)
        };
        let guard = Self(permits);
        due_work.iter().for_each(DeferredWorkHandle::run);
        guard
    }
}

impl Drop for WaitingCallGuard<'_> {
    fn drop(&mut self) {
        lock(&self.0.deferred_releases).waiting_count -= 1;
    }
}

fn lock(releases: &Mutex<DeferredReleases>) -> MutexGuard<'_, DeferredReleases> {
    releases.lock().unwrap_or_else(PoisonError::into_inner)
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
        // The answer has been delivered, so the work runs at once and the permit is available again.
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
