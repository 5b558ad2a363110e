//! The guard that applies the approvals of an agent loop to its calls. It also applies the approvals of the outer loops in
//! which the loop is nested.

use std::sync::Arc;

use async_trait::async_trait;

use crate::event::{Event, Observers, RecordedApprovalDecision};
use crate::journal::Journal;
use toolwit_core::{
    ApprovalAnswer, ApprovalBasis, ApprovalObserver, ApprovalRequest, Approvals, Approver, Arguments, CallAccess,
    CallGuard, DecidedCall, EffectSource, PermittedCall, StartingCall, Tool, ToolContext, ToolError,
};

/// The guard that applies the approvals of one agent loop to its calls.
struct ApprovalGuard {
    approvals: Arc<Approvals>,
    observers: Observers,
    /// The journal of the conversation, or of an outer conversation if the conversation has none.
    journal: Option<Arc<Journal>>,
    /// The guard of the outer loop. It decides last, on exactly the arguments with which the call will run.
    outer: Option<Arc<dyn CallGuard>>,
}

/// Returns the context of a loop with a guard that applies the approvals of the loop and then those of the outer loops.
/// A loop without approvals keeps the guard of the outer loop.
pub(super) fn with_approval_guard(
    context: ToolContext,
    approvals: Option<&Arc<Approvals>>,
    observers: &Observers,
) -> ToolContext {
    // An idle policy has no rules, sets no effect classes and requires no approvals, so it needs no guard.
    let Some(approvals) = approvals.filter(|approvals| !approvals.policy().is_idle()) else {
        return context;
    };
    let guard = ApprovalGuard {
        approvals: approvals.clone(),
        observers: observers.clone(),
        journal: context.extension::<Arc<Journal>>().cloned(),
        outer: context.guard().cloned(),
    };
    context.with_guard(Arc::new(guard))
}

#[async_trait]
impl CallGuard for ApprovalGuard {
    async fn permit(&self, call: StartingCall<'_>) -> Result<PermittedCall, ToolError> {
        let Some(outer) = &self.outer else {
            return self.approvals.decide(call, self).await;
        };
        let (id, tool, context) = (call.id.clone(), call.tool, call.context);
        let own_permit = self.approvals.decide(call, self).await?;
        let mut permitted = outer
            .permit(StartingCall::new(id, tool, own_permit.arguments, context))
            .await?;
        permitted.is_edited |= own_permit.is_edited;
        Ok(permitted)
    }

    async fn access(&self, tool: &dyn Tool, arguments: &Arguments, context: &ToolContext) -> CallAccess {
        let own_access = self.approvals.access(tool, arguments, context).await;
        match &self.outer {
            // If the operator of the outer loop has set the effect class, this class takes precedence.
            Some(outer) => {
                let outer_access = outer.access(tool, arguments, context).await;
                if outer_access.effect.source == EffectSource::Operator {
                    outer_access
                } else {
                    own_access
                }
            }
            None => own_access,
        }
    }
}

#[async_trait]
impl ApprovalObserver for ApprovalGuard {
    fn requested(&self, request: &ApprovalRequest) {
        self.observers.emit(&Event::ApprovalRequested(Box::new(request.into())));
    }

    async fn ask(
        &self,
        approver: &dyn Approver,
        request: ApprovalRequest,
        context: &ToolContext,
    ) -> (ApprovalAnswer, ApprovalBasis) {
        match &self.journal {
            Some(journal) => journal.ask(approver, request, context).await,
            None => (approver.approve(request, context).await, ApprovalBasis::Approver),
        }
    }

    fn decided(&self, decided: &DecidedCall<'_>) {
        self.observers
            .emit(&Event::ApprovalDecided(Box::new(RecordedApprovalDecision {
                id: decided.request.id.clone(),
                tool: decided.request.tool.clone(),
                decision: decided.decision,
                basis: decided.basis,
                reason: decided.reason.map(str::to_owned),
                arguments: decided.edited_arguments.cloned(),
                remembered_answer: decided.remembered_answer.cloned(),
            })));
    }
}
