//! How many calls of a plugin run at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::host_api::CallStack;
use super::link_once::cancelled_before;
use toolwit_core::ToolContext;
use toolwit_core::limits::CallLimits;
use toolwit_core::{Error, ErrorKind, Phase};

/// The places in which calls of a plugin run. Clones share them.
#[derive(Clone)]
pub(crate) struct Places {
    free: Arc<Semaphore>,
}

/// A place to run in, until it is dropped.
#[derive(Default)]
pub(crate) struct Place {
    /// How long it was waited for.
    pub(crate) queued: Duration,
    /// `None` for a call inside another, which has its place already.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(count)),
        }
    }

    /// Waits for a free place. A call inside another runs in the place of the outermost: to wait for one while holding
    /// another could wait for ever.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`], and [`ErrorKind::Busy`] when none was free for as long as a call may take.
    pub(crate) async fn enter(&self, context: &ToolContext, limits: &CallLimits) -> Result<Place, Error> {
        if context.cancel().is_cancelled() {
            return Err(cancelled_before());
        }
        if CallStack::of(context).is_some() {
            return Ok(Place::default());
        }
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            return Ok(Place {
                _permit: Some(permit),
                queued: Duration::ZERO,
            });
        }
        let waiting = Instant::now();
        // Apart, as all that seldom waits: it would make the future of every call larger.
        let permit = Box::pin(self.enter_in_turn(context, limits)).await?;
        Ok(Place {
            _permit: Some(permit),
            queued: waiting.elapsed(),
        })
    }

    async fn enter_in_turn(&self, context: &ToolContext, limits: &CallLimits) -> Result<OwnedSemaphorePermit, Error> {
        let queue = self.free.clone();
        tokio::select! {
            biased;
            () = context.cancel().cancelled() => Err(cancelled_before()),
            permit = queue.acquire_owned() => permit.map_err(|_| busy()),
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
