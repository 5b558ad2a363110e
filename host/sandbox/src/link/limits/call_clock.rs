//! The limits and the deadline of one call.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use toolwit_core::limits::CallLimits;
use toolwit_core::{ToolContext, WallClock};

/// The limits of a call and its start time. The deadline covers instantiation, guest code and host calls.
pub(crate) struct CallClock<'a> {
    pub(crate) limits: &'a CallLimits,
    pub(crate) started: Instant,
    pub(crate) context: &'a ToolContext,
    /// The clock that stops while a person is asked about a nested call. A call without tools in its context has no such
    /// clock.
    wall_clock: Option<Arc<WallClock>>,
}

/// The end of a call. It moves while a person is asked about a nested call.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    started: Instant,
    wall_max: Duration,
    /// See [`CallClock::wall_clock`].
    wall_clock: Option<Arc<WallClock>>,
}

impl Deadline {
    /// Returns the time at which the call ends if no person is asked until then.
    pub(crate) fn instant(&self) -> Instant {
        match &self.wall_clock {
            Some(wall_clock) => wall_clock.deadline(self.wall_max),
            None => self.started + self.wall_max,
        }
    }

    /// Waits until the call must end.
    pub(crate) async fn wait(&self) {
        match &self.wall_clock {
            Some(wall_clock) => wall_clock.wait_for_limit(self.wall_max).await,
            None => sleep_until(self.instant()).await,
        }
    }

    /// Adds the clock of this deadline to the context of a nested call, so that questions about the nested call move
    /// the deadline.
    pub(crate) fn add_clock_to(&self, nested: ToolContext) -> ToolContext {
        match &self.wall_clock {
            Some(wall_clock) => nested.with_wall_clock(wall_clock.clone()),
            None => nested,
        }
    }
}

impl<'a> CallClock<'a> {
    pub(crate) fn start(limits: &'a CallLimits, context: &'a ToolContext) -> Self {
        Self {
            limits,
            started: Instant::now(),
            context,
            wall_clock: context.tools().map(|_| WallClock::start(WallClock::of(context))),
        }
    }

    pub(crate) fn cancel(&self) -> &'a CancellationToken {
        self.context.cancel()
    }

    pub(crate) fn deadline(&self) -> Deadline {
        Deadline {
            started: self.started,
            wall_max: self.limits.wall_max,
            wall_clock: self.wall_clock.clone(),
        }
    }
}
