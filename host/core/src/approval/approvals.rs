//! The decision whether a call may start: by the policy, a remembered answer or the approver.

use std::sync::Arc;

use async_trait::async_trait;

use super::approver::Approver;
use super::call_approval::{CallApproval, denial, request_of, validate};
use super::call_guard::{PermittedCall, StartingCall};
use super::policy::{ApprovalMode, ApprovalPolicy};
use super::question_queue::QuestionQueue;
use super::remembered_answers::{ApprovalMemory, RememberedAnswer};
use super::request::{ApprovalAnswer, ApprovalBasis, ApprovalDecision, ApprovalRequest};
use crate::{Arguments, CallAccess, Tool, ToolContext, ToolError};

/// The approvals of a conversation and its agents: policy, approver and remembered answers.
///
/// Without an approver, a call that needs an approval does not run.
///
/// ```
/// use toolwit_core::{Approval, ApprovalPolicy, ApprovalRequest, Approvals};
///
/// let approvals = Approvals::new(ApprovalPolicy::default()).with_approver(|request: &ApprovalRequest| {
///     match request.arguments.get("amount").and_then(|amount| amount.as_u64()) {
///         Some(0..100) => Approval::Approved,
///         _ => Approval::Denied { reason: "only amounts below 100".to_owned() },
///     }
/// });
/// # let _ = approvals;
/// ```
pub struct Approvals {
    policy: ApprovalPolicy,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) memory: ApprovalMemory,
    /// The questions to a sequential approver.
    pub(super) queue: QuestionQueue,
}

/// An observer of the requests for approval and of the decisions, for example for a log.
#[async_trait]
pub trait ApprovalObserver: Send + Sync {
    /// Receives a request that neither the policy nor a remembered answer decides. The approver, if there is one, receives it
    /// afterwards.
    fn requested(&self, request: &ApprovalRequest);

    /// Asks the approver. An observer that stores requests and their answers can return a stored answer instead.
    async fn ask(
        &self,
        approver: &dyn Approver,
        request: ApprovalRequest,
        context: &ToolContext,
    ) -> (ApprovalAnswer, ApprovalBasis) {
        (approver.approve(request, context).await, ApprovalBasis::Approver)
    }

    /// Receives a decision, before the call starts.
    fn decided(&self, decided: &DecidedCall<'_>);
}

/// A decision about a call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DecidedCall<'a> {
    /// The request. It was not sent to the approver if the policy or the memory decided.
    pub request: &'a ApprovalRequest,
    /// The decision.
    pub decision: ApprovalDecision,
    /// The source of the decision: the approver, a stored or remembered answer, or the policy.
    pub basis: ApprovalBasis,
    /// The arguments that replace those of the request, if the approver edited them.
    pub edited_arguments: Option<&'a Arguments>,
    /// The reason why the call does not run, if it was denied or not answered.
    pub reason: Option<&'a str>,
    /// The new remembered answer, if the approver's answer is valid for further calls.
    pub remembered_answer: Option<&'a RememberedAnswer>,
}

impl<'a> DecidedCall<'a> {
    pub(super) fn new(request: &'a ApprovalRequest, decision: ApprovalDecision, basis: ApprovalBasis) -> Self {
        Self {
            request,
            decision,
            basis,
            edited_arguments: None,
            reason: None,
            remembered_answer: None,
        }
    }
}

impl Default for Approvals {
    fn default() -> Self {
        Self::new(ApprovalPolicy::default())
    }
}

impl Approvals {
    /// Creates approvals without an approver.
    #[must_use]
    pub fn new(policy: ApprovalPolicy) -> Self {
        Self {
            policy,
            approver: None,
            memory: ApprovalMemory::new(),
            queue: QuestionQueue::default(),
        }
    }

    /// Sets the approver.
    #[must_use]
    pub fn with_approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Sets the memory.
    #[must_use]
    pub fn with_memory(mut self, memory: ApprovalMemory) -> Self {
        self.memory = memory;
        self
    }

    /// Returns the policy.
    #[must_use]
    pub fn policy(&self) -> &ApprovalPolicy {
        &self.policy
    }

    /// Returns the remembered answers.
    #[must_use]
    pub fn memory(&self) -> &ApprovalMemory {
        &self.memory
    }

    /// Returns the access of a call, with the effect class of the policy if the policy sets one.
    pub async fn access(&self, tool: &dyn Tool, arguments: &Arguments, context: &ToolContext) -> CallAccess {
        let mut access = tool.access(arguments, context).await;
        access.effect = self.policy.effect(tool, access.effect);
        access
    }

    /// Decides whether a call may start, and with which arguments.
    ///
    /// # Errors
    /// As [`CallGuard::permit`](super::CallGuard::permit).
    pub async fn decide(
        &self,
        call: StartingCall<'_>,
        observer: &dyn ApprovalObserver,
    ) -> Result<PermittedCall, ToolError> {
        let access = self.access(call.tool, &call.arguments, call.context).await;
        let mode = self.mode(call.tool, &call.arguments, &access);
        if mode == ApprovalMode::Never {
            return Ok(PermittedCall::unchanged(call.arguments, access));
        }
        validate(call.tool, &call.arguments)?;
        let request = request_of(&call, &access).await;
        let approval = CallApproval {
            approvals: self,
            call: &call,
            observer,
            is_first_time_mode: mode == ApprovalMode::FirstTime,
        };
        if mode == ApprovalMode::Deny {
            let reason = "the policy of the operator does not allow it";
            let mut decided = DecidedCall::new(&request, ApprovalDecision::Denied, ApprovalBasis::Policy);
            decided.reason = Some(reason);
            observer.decided(&decided);
            return Err(denial(&call, reason));
        }
        approval.decide(request).await
    }

    /// Returns the approval mode of a call. It is never [`ApprovalMode::Writes`].
    pub(super) fn mode(&self, tool: &dyn Tool, arguments: &Arguments, access: &CallAccess) -> ApprovalMode {
        let chosen_mode = self.policy.mode(tool, arguments, access.effect.class);
        // Without a rule for an agent, a call of the agent needs no approval, because each call that the agent makes is
        // decided separately.
        if tool.is_agent() && !chosen_mode.is_set_by_rule && chosen_mode.mode != ApprovalMode::Deny {
            ApprovalMode::Never
        } else {
            chosen_mode.mode
        }
    }
}
