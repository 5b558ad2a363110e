//! The record of one call, for the log and the metrics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::service::RequestContext;
use tracing::Level;

use toolwit::ErrorKind;
use toolwit::tool::{Effect, ToolId};

/// What is known about the call of a request. The extensions of the request carry it. Clones share the record.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallRecord(Arc<Mutex<RecordedCall>>);

/// The values of a [`CallRecord`].
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedCall {
    /// The tool that was called. `None` if no tool was called.
    pub(crate) tool: Option<ToolId>,
    /// The effect of the call. `None` if the log does not need it.
    pub(crate) effect: Option<Effect>,
    /// Whether the call was allowed, and whether a person decided.
    pub(crate) decision: Option<&'static str>,
    /// The kind of the error, if the call did not run to its end.
    pub(crate) error: Option<ErrorKind>,
}

impl CallRecord {
    /// Returns the record of a request, or a new one.
    pub(super) fn of(request: &RequestContext<RoleServer>) -> Self {
        request.extensions.get().cloned().unwrap_or_default()
    }

    /// Returns whether calls are logged, so that their effects must be determined.
    pub(super) fn is_logged() -> bool {
        tracing::enabled!(Level::INFO)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, RecordedCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the values of the record.
    pub(crate) fn values(&self) -> RecordedCall {
        self.lock().clone()
    }
}
