//! The decision of a client's user about a call, for the log.

use std::sync::{Arc, Mutex, PoisonError};

use toolwit::ToolContext;
use toolwit::tool::Approval;

/// The last decision of the user about a call, or about a call that a tool made during it. The context of a call carries it.
/// Clones share the decision.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserDecision(Arc<Mutex<Option<&'static str>>>);

impl UserDecision {
    /// Records the decision about a call.
    pub(super) fn record(context: &ToolContext, approval: &Approval) {
        let Some(Self(decision)) = context.extension() else {
            return;
        };
        *decision.lock().unwrap_or_else(PoisonError::into_inner) = Some(match approval {
            Approval::Approved | Approval::Edited { .. } => "approved",
            Approval::Denied { .. } => "denied",
            _ => "unanswered",
        });
    }

    /// Returns the decision, or `None` if the user was not asked.
    pub(crate) fn get(&self) -> Option<&'static str> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
