//! The limits and the deadline of one call.

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use toolwit_core::ToolContext;
use toolwit_core::limits::CallLimits;

/// The limits of a call and its start time. The deadline covers instantiation, guest code and host calls.
pub(crate) struct CallClock<'a> {
    pub(crate) limits: &'a CallLimits,
    pub(crate) started: Instant,
    pub(crate) context: &'a ToolContext,
}

impl<'a> CallClock<'a> {
    pub(crate) fn start(limits: &'a CallLimits, context: &'a ToolContext) -> Self {
        Self {
            limits,
            started: Instant::now(),
            context,
        }
    }

    pub(crate) fn cancel(&self) -> &'a CancellationToken {
        self.context.cancel()
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.started + self.limits.wall_max
    }
}
