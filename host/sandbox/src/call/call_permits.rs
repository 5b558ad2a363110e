//! The permits that limit how many calls of a plugin run at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::link::compile::link_once::cancelled_before_start;
use crate::link::host::host_api::CallStack;
use toolwit_core::limits::CallLimits;
use toolwit_core::{AfterAnswer, Error, ErrorKind, LeftWork, Phase, ToolContext};

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
    waiting: usize,
    /// The work of ended calls that waits until their answers are delivered.
    left_work: Vec<LeftWork>,
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
    /// Does the work of an ended call for which its caller need not wait, and then makes the permit available. The work is
    /// done after the answer is delivered if the context says when, otherwise in a task, and at the latest when another
    /// call waits for the permit. A nested call has no permit of its own, and its work is dropped.
    pub(crate) fn release_after(self, context: &ToolContext, work: impl Future<Output = ()> + Send + 'static) {
        let (Some(permit), Ok(runtime)) = (self.permit, Handle::try_current()) else {
            return;
        };
        let work = async move {
            work.await;
            drop(permit);
        };
        let Some(after) = AfterAnswer::of(context) else {
            runtime.spawn(work);
            return;
        };
        match after.leave(Box::pin(work)) {
            Ok(left) => lock(&self.queue).add(left),
            Err(work) => drop(runtime.spawn(work)),
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
    /// [`ErrorKind::Cancelled`], and [`ErrorKind::Busy`] if no permit becomes available within `wall_max`.
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
            permit = semaphore.acquire_owned() => permit.map_err(|_| busy()),
            () = tokio::time::sleep(limits.wall_max) => Err(busy()),
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
    /// Adds work that waits until an answer is delivered. If a call waits for a permit, the work begins at once.
    fn add(&mut self, left: LeftWork) {
        self.left_work.retain(|other| !other.has_begun());
        self.left_work.push(left);
        if self.waiting > 0 {
            self.begin_left_work();
        }
    }

    fn begin_left_work(&mut self) {
        for work in self.left_work.drain(..).filter_map(|left| left.take()) {
            tokio::spawn(work);
        }
    }
}

impl<'a> WaitingCall<'a> {
    fn start(permits: &'a CallPermits) -> Self {
        let mut queue = lock(&permits.queue);
        queue.waiting += 1;
        queue.begin_left_work();
        Self(permits)
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        lock(&self.0.queue).waiting -= 1;
    }
}

fn lock(queue: &Mutex<PermitQueue>) -> MutexGuard<'_, PermitQueue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

fn busy() -> Error {
    Error::new(
        ErrorKind::Busy,
        Phase::Execute,
        "too many calls of this plugin are running",
    )
    .with_suggestion("call again when other calls have ended")
}
