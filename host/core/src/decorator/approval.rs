//! Approval of calls before they run.

use async_trait::async_trait;

use crate::{Arguments, Decorator, Error, ErrorKind, Phase, Tool, ToolContext, ToolError, ToolId, ToolResult};

/// A call that waits for approval.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The id of the tool.
    pub tool: ToolId,
    /// The preferred name of the tool, for display.
    pub name: String,
    /// The arguments of the call.
    pub arguments: Arguments,
}

/// The decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// The call may run.
    Approved,
    /// The call must not run.
    Denied {
        /// The reason, which the model receives.
        reason: String,
    },
}

/// Decides whether a call may run: a person at a terminal, a rule, a service. Cancelling the call ends the wait.
///
/// A closure over the request is an approver.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Decides whether a call may run.
    async fn approve(&self, request: ApprovalRequest, context: &ToolContext) -> Approval;
}

#[async_trait]
impl<F: Fn(&ApprovalRequest) -> Approval + Send + Sync> Approver for F {
    async fn approve(&self, request: ApprovalRequest, _context: &ToolContext) -> Approval {
        self(&request)
    }
}

/// A decorator that requires approval of each call, also of calls of the methods of entities that the tool returns.
pub struct ApprovalGate<A>(A);

impl<A: Approver> ApprovalGate<A> {
    /// Requires the approval of this approver.
    pub fn new(approver: A) -> Self {
        Self(approver)
    }
}

#[async_trait]
impl<A: Approver> Decorator for ApprovalGate<A> {
    fn is_guard(&self) -> bool {
        true
    }

    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let definition = tool.definition();
        let request = ApprovalRequest {
            tool: definition.id.clone(),
            name: definition.name().to_owned(),
            arguments: arguments.clone(),
        };
        let refused = |kind, message: String| {
            let error = Error::new(kind, Phase::Validate, message).with_tool(definition.name());
            Err(ToolError::Model(error))
        };
        let decision = tokio::select! {
            biased;
            () = context.cancel().cancelled() => None,
            decision = self.0.approve(request, context) => Some(decision),
        };
        match decision {
            Some(Approval::Approved) => tool.call(arguments, context).await,
            Some(Approval::Denied { reason }) => {
                refused(ErrorKind::Denied, format!("the call was not approved: {reason}"))
            }
            None => refused(
                ErrorKind::Cancelled,
                "the call was cancelled before it was approved; it did not run".to_owned(),
            ),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{NativeTool, ToolExt};

    fn counting_tool(runs: &Arc<AtomicUsize>) -> NativeTool {
        let runs = runs.clone();
        let tool = NativeTool::new("pay", "Pays.", json!({"type": "object"}), move |_, _| {
            runs.fetch_add(1, Ordering::Relaxed);
            async { Ok(ToolResult::text("paid")) }
        });
        tool.unwrap()
    }

    struct SilentApprover;

    #[async_trait]
    impl Approver for SilentApprover {
        async fn approve(&self, _: ApprovalRequest, _: &ToolContext) -> Approval {
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn call_runs_only_if_approved() {
        let runs = Arc::default();
        let pay = counting_tool(&runs).with_approval(|request: &ApprovalRequest| {
            match request.arguments["amount"].as_u64() {
                Some(0..10) => Approval::Approved,
                _ => Approval::Denied {
                    reason: format!("`{}` may spend less than 10", request.name),
                },
            }
        });
        let call = |amount: u32| {
            let arguments = json!({ "amount": amount }).as_object().unwrap().clone();
            let pay = &pay;
            async move { pay.call(arguments, &ToolContext::new()).await }
        };
        assert_eq!(call(9).await.unwrap().for_llm, "paid");
        let error = call(10).await.unwrap_err();
        assert_eq!(error.report().kind, ErrorKind::Denied);
        assert!(error.to_string().contains("`pay` may spend less"), "{error}");
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn cancelling_ends_the_wait_for_an_approval() {
        let runs = Arc::default();
        let pay = counting_tool(&runs).with_approval(SilentApprover);
        let cancel = CancellationToken::new();
        cancel.cancel();
        let context = ToolContext::new().with_cancel(cancel);
        let error = pay.call(Arguments::new(), &context).await.unwrap_err();
        assert_eq!(error.report().kind, ErrorKind::Cancelled);
        assert_eq!(runs.load(Ordering::Relaxed), 0);
    }
}
