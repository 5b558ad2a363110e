//! The interface to the people and services that approve calls.

use async_trait::async_trait;

use super::request::{Approval, ApprovalAnswer, ApprovalRequest};
use crate::ToolContext;

/// A person at a terminal, a rule or a service that decides whether a call may run.
///
/// Only the call that needs the approval waits. Calls that do not depend on its result continue. If the call is cancelled,
/// it no longer waits. A closure that takes the request and returns an [`Approval`] is an approver.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Decides whether a call may run.
    async fn approve(&self, request: ApprovalRequest, context: &ToolContext) -> ApprovalAnswer;

    /// Returns whether the approver answers one question at a time, such as a person at a terminal. A remembered answer then
    /// also decides the waiting calls to which it applies, so that the approver is not asked about them.
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
