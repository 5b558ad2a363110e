//! The port to the people and services that approve calls.

use async_trait::async_trait;

use super::request::{Approval, ApprovalAnswer, ApprovalRequest};
use crate::ToolContext;

/// Decides whether a call may run: a person at a terminal, a rule, a service. Cancelling the call ends the wait.
///
/// Only the call for which it is asked waits; others that do not depend on it continue. A closure over the request is an approver.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Decides whether a call may run.
    async fn approve(&self, request: ApprovalRequest, context: &ToolContext) -> ApprovalAnswer;

    /// Returns whether it can only be asked one question at a time, as at a terminal. Then an answer that is remembered also answers
    /// the questions that wait for it.
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
