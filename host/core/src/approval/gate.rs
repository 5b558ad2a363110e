//! Approval of single tools.

use std::sync::Arc;

use async_trait::async_trait;

use super::approvals::{ApprovalObserver, Approvals, DecidedCall};
use super::approver::Approver;
use super::call_guard::StartingCall;
use super::policy::{ApprovalMode, ApprovalPolicy};
use super::request::ApprovalRequest;
use crate::{Arguments, Decorator, Tool, ToolContext, ToolError, ToolResult};

/// A decorator that requires approval of each call, also of calls of the methods of entities that the tool returns.
///
/// It is independent of the approvals of a conversation, and remembers the answers that have a scope.
#[derive(Clone)]
pub struct ApprovalGate(Arc<Approvals>);

impl ApprovalGate {
    /// Requires the approval of this approver.
    pub fn new(approver: impl Approver + 'static) -> Self {
        let policy = ApprovalPolicy::of_mode(ApprovalMode::Always);
        Self(Arc::new(Approvals::new(policy).with_approver(approver)))
    }
}

/// An observer of nothing.
struct NoObserver;

impl ApprovalObserver for NoObserver {
    fn requested(&self, _request: &ApprovalRequest) {}

    fn decided(&self, _decided: &DecidedCall<'_>) {}
}

#[async_trait]
impl Decorator for ApprovalGate {
    fn is_guard(&self) -> bool {
        true
    }

    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let call = StartingCall::new("gate", tool, arguments, context);
        let permitted = self.0.decide(call, &NoObserver).await?;
        tool.call(permitted.arguments, context).await
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
    use crate::{Approval, ApprovalAnswer, ErrorKind, NativeTool, ToolExt};

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
        async fn approve(&self, _: ApprovalRequest, _: &ToolContext) -> ApprovalAnswer {
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
