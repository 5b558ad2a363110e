//! The port to the people and services that approve calls.

use async_trait::async_trait;

use super::request::{Approval, ApprovalAnswer, ApprovalRequest};
use crate::ToolContext;

/// A person at a terminal, a rule or a service that decides whether a call may run.
///
/// Only the call that needs the approval waits; calls that do not depend on it continue. Cancelling the call ends its wait. A
/// closure that takes the request is an approver.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Decides whether a call may run.
    async fn approve(&self, request: ApprovalRequest, context: &ToolContext) -> ApprovalAnswer;

    /// Returns whether the approver answers one question at a time, as at a terminal. A remembered answer then also
    /// answers the waiting questions to which it applies.
    fn is_sequential(&self) -> bool {
        false
    }
}

#[async_trait]
impl<F: Fn(&ApprovalRequest) -> Approval + Send + Sync> Approver for F {
    async fn approve(&self, request: ApprovalRequest, _context: &ToolContext) -> ApprovalAnswer {
        self(&request).into()
    }
}
