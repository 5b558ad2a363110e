//! The permits that limit how many calls of a plugin run at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::instance::Instance;
use crate::link::compile::link_once::cancelled_before_start;
use crate::link::host::host_api::CallStack;
use toolwit_core::ToolContext;
use toolwit_core::limits::CallLimits;
use toolwit_core::{Error, ErrorKind, Phase};

/// The permits of a plugin's calls. Clones share them.
#[derive(Clone)]
pub(crate) struct CallPermits {
    semaphore: Arc<Semaphore>,
}

/// A permit to run a call. Dropping the permit makes it available again.
#[derive(Default)]
pub(crate) struct CallPermit {
    /// The time that the call waited for the permit.
    pub(crate) waiting_time: Duration,
    /// `None` for a nested call, which runs under the permit of the outermost call.
    permit: Option<OwnedSemaphorePermit>,
}

impl CallPermit {
    /// Drops the instance of a call in a background task, so that the caller need not wait until the memory of the instance is
    /// cleared. The permit becomes available after that, so that there are never more instances than permits. The instance of a
    /// nested call, which has no permit of its own, is dropped at once.
    pub(crate) fn release_after_drop(self, instance: Instance) {
        if let (Some(permit), Ok(runtime)) = (self.permit, Handle::try_current()) {
            runtime.spawn(async move {
                drop(instance);
                drop(permit);
            });
        }
    }
}

impl CallPermits {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            semaphore: Arc::new(Semaphore::new(count)),
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
            return Ok(CallPermit::default());
        }
        if let Ok(permit) = self.semaphore.clone().try_acquire_owned() {
            return Ok(CallPermit {
                permit: Some(permit),
                waiting_time: Duration::ZERO,
            });
        }
        let started = Instant::now();
        // Boxed, because it rarely runs and would enlarge the future of every call.
        let permit = Box::pin(self.acquire_in_turn(context, limits)).await?;
        Ok(CallPermit {
            permit: Some(permit),
            waiting_time: started.elapsed(),
        })
    }

    async fn acquire_in_turn(&self, context: &ToolContext, limits: &CallLimits) -> Result<OwnedSemaphorePermit, Error> {
        let semaphore = self.semaphore.clone();
        tokio::select! {
            biased;
            () = context.cancel().cancelled() => Err(cancelled_before_start()),
            permit = semaphore.acquire_owned() => permit.map_err(|_| busy()),
            () = tokio::time::sleep(limits.wall_max) => Err(busy()),
        }
    }
}

fn busy() -> Error {
    Error::new(
        ErrorKind::Busy,
        Phase::Execute,
        "too many calls of this plugin are running",
    )
    .with_suggestion("call again when other calls have ended")
}
