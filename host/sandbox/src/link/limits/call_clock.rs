//! The start time, the limits and the deadline of one call, and its shares of processors and memory.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::compute_turns::Turn;
use super::shared_budget::SharedBudget;
use toolwit_core::limits::CallLimits;
use toolwit_core::{PrincipalName, StoppedClock, ToolContext, WallClock};

/// The start time of a call, with its limits and its context, from which the deadline is computed. The deadline covers
/// instantiation, guest code and host calls.
pub(crate) struct CallClock<'a> {
    pub(crate) limits: &'a CallLimits,
    pub(crate) started: Instant,
    pub(crate) context: &'a ToolContext,
    /// The turn to compute of the call's guest.
    pub(crate) turn: Turn,
    /// The budgets that all calls share; `None` for a spare instance, which belongs to no call.
    pub(crate) budgets: Option<&'a SharedBudgets>,
    /// The clock that stops while a person is asked: about a nested call, or by the guest. `None` if the context has neither tools
    /// nor a respondent, because no person is then asked during the call.
    wall_clock: Option<Arc<WallClock>>,
}

/// The budgets that all calls of a process share.
#[derive(Debug)]
pub(crate) struct SharedBudgets {
    /// The memory of all instances that calls use, in bytes.
    pub(crate) memory: Arc<SharedBudget>,
    /// The files and connections that guests have open.
    pub(crate) files: Arc<SharedBudget>,
}

/// The time at which a call must end. The deadline moves while a person is asked about a nested call, or by the guest.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    started: Instant,
    wall_max: Duration,
    /// See [`CallClock::wall_clock`].
    wall_clock: Option<Arc<WallClock>>,
}

impl Deadline {
    /// Returns the time at which the call must end if no person is asked until then.
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

    /// Stops the clock of this deadline, and the clocks of the surrounding calls and of the run, until the returned guard is
    /// dropped.
    pub(crate) fn stop_clock(&self) -> Option<StoppedClock> {
        self.wall_clock.as_ref().map(WallClock::stop)
    }

    /// Adds the clock of this deadline to the context of a nested call, so that questions about the nested call move
    /// the deadline.
    pub(crate) fn add_clock_to(&self, nested_context: ToolContext) -> ToolContext {
        match &self.wall_clock {
            Some(wall_clock) => nested_context.with_wall_clock(wall_clock.clone()),
            None => nested_context,
        }
    }
}

impl<'a> CallClock<'a> {
    pub(crate) fn start(limits: &'a CallLimits, context: &'a ToolContext) -> Self {
        let can_stop = context.tools().is_some() || context.respondent().is_some();
        Self {
            limits,
            started: Instant::now(),
            context,
            turn: Turn::unlimited(),
            budgets: None,
            wall_clock: can_stop.then(|| WallClock::start(WallClock::of(context))),
        }
    }

    /// Sets the call's turn to compute, and the budgets that it shares with other calls.
    pub(crate) fn with_shares(self, turn: Turn, budgets: &'a SharedBudgets) -> Self {
        Self {
            turn,
            budgets: Some(budgets),
            ..self
        }
    }

    /// Returns the caller of the call.
    pub(crate) fn caller(&self) -> Option<PrincipalName> {
        PrincipalName::of(self.context)
    }

    pub(crate) fn cancel_token(&self) -> &'a CancellationToken {
        self.context.cancel_token()
    }

    pub(crate) fn deadline(&self) -> Deadline {
        Deadline {
            started: self.started,
            wall_max: self.limits.wall_max,
            wall_clock: self.wall_clock.clone(),
        }
    }
}
