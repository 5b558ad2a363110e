//! The calls of a replay: executed again if they change nothing and depend on no service, otherwise answered from the
//! trace.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde::Serialize;

use super::divergence_check::DivergenceCheck;
use super::recording::Recording;
use toolwit_core::{
    Approval, ApprovalAnswer, ApprovalDecision, ApprovalRequest, Approver, Arguments, CallAccess, CallChain, Decorator,
    EffectClass, EffectSource, Error, ErrorKind, Phase, Tool, ToolContext, ToolError, ToolId, ToolResult,
};

/// The prefixes of granted rules that make the result of a call dependent on services, other tools, stored values or a person.
const DEPENDENT_RULE_PREFIXES: [&str; 4] = ["http ", "tool ", "keyvalue ", "ask"];

/// The origin of the result of a replayed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOrigin {
    /// The call was executed again.
    Executed,
    /// The result comes from the trace.
    Trace,
}

/// A call that the model made in a replay before the fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReplayedCall {
    /// The id of the call.
    pub id: String,
    /// The id of the tool.
    pub tool: ToolId,
    /// The origin of the result.
    pub origin: CallOrigin,
    /// The types of the artifacts that were too large for the trace, so that the replayed result lacks them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted_artifacts: Vec<String>,
}

/// The calls of a replay so far, and the trace that answers calls.
pub(super) struct CallReplay {
    pub(super) recording: Arc<Recording>,
    /// The number of the event at which the replay forks; `None` for a replay without a fork. From this event on, calls
    /// run as in a new conversation.
    fork: Option<u64>,
    /// Whether the model was asked for a response at or after the fork.
    pub(super) has_passed_fork: Arc<AtomicBool>,
    check: Arc<DivergenceCheck>,
    /// Held while a call of the model runs, so that calls end in the order in which they start.
    call_lock: tokio::sync::Mutex<()>,
    pub(super) replayed_calls: Mutex<Vec<ReplayedCall>>,
}

impl CallReplay {
    pub(super) fn new(
        recording: Arc<Recording>,
        fork: Option<u64>,
        has_passed_fork: Arc<AtomicBool>,
        check: Arc<DivergenceCheck>,
    ) -> Self {
        Self {
            recording,
            fork,
            has_passed_fork,
            check,
            call_lock: tokio::sync::Mutex::default(),
            replayed_calls: Mutex::default(),
        }
    }

    /// Returns whether a call starts at or after the fork.
    pub(super) fn is_at_or_after_fork(&self, id: &str) -> bool {
        let is_recorded_after = |fork| self.recording.calls.get(id).is_some_and(|call| call.sequence >= fork);
        self.has_passed_fork.load(Ordering::Relaxed) || self.fork.is_some_and(is_recorded_after)
    }

    fn record(&self, id: &str, tool: &dyn Tool, origin: CallOrigin, omitted_artifacts: Vec<String>) {
        let mut calls = self.replayed_calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(ReplayedCall {
            id: id.to_owned(),
            tool: tool.definition().id.clone(),
            origin,
            omitted_artifacts,
        });
    }
}

/// Returns whether a replay executes a call again: if the call changes nothing, its tool does not run on a server, and
/// no granted rule lets its result depend on services, other tools, stored values or a person. The call may read files. The
/// operator must provide the files of the recorded run.
fn is_repeatable(tool: &dyn Tool, access: &CallAccess) -> bool {
    let is_dependent = |rule: &String| DEPENDENT_RULE_PREFIXES.iter().any(|prefix| rule.starts_with(prefix));
    let is_remote = tool.definition().id.is_mcp() || access.effect.source == EffectSource::Server;
    access.effect.class == EffectClass::Read && !is_remote && !access.grant.iter().any(is_dependent)
}

/// The decorator of all tools of a replay. It decides for each call whether the tool runs or the trace answers the call.
pub(super) struct ReplayDecorator(pub(super) Arc<CallReplay>);

#[async_trait]
impl Decorator for ReplayDecorator {
    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let id = CallChain::call_id_of(context);
        let is_nested = CallChain::of(context).len() > 1;
        if let Some(divergence) = self.0.check.divergence() {
            return Err(ToolError::Operator(divergence.into()));
        }
        if self.0.is_at_or_after_fork(id) {
            return tool.call(arguments, context).await;
        }
        let access = tool.access(&arguments, context).await;
        if is_nested {
            return if is_repeatable(tool, &access) {
                tool.call(arguments, context).await
            } else {
                Err(not_recorded_error(tool))
            };
        }
        let _guard = self.0.call_lock.lock().await;
        if is_repeatable(tool, &access) {
            self.0.record(id, tool, CallOrigin::Executed, Vec::new());
            return tool.call(arguments, context).await;
        }
        let recorded_call = self.0.recording.calls.get(id);
        let recorded_call = recorded_call.filter(|call| call.tool == tool.definition().id);
        let outcome = recorded_call.and_then(|call| call.outcome.clone());
        let outcome = outcome.ok_or_else(|| not_recorded_error(tool))?;
        let omitted = outcome.artifacts.iter().filter(|artifact| artifact.omitted.is_some());
        let omitted_types = omitted.map(|artifact| artifact.kind.clone()).collect();
        self.0.record(id, tool, CallOrigin::Trace, omitted_types);
        outcome.into_call_result()
    }
}

/// Returns the error for a call that the replay does not execute and whose result the trace does not have.
fn not_recorded_error(tool: &dyn Tool) -> ToolError {
    let message = format!(
        "the trace has no result of this call of `{}`, and a replay does not execute it",
        tool.definition().id
    );
    ToolError::Model(Error::new(ErrorKind::Denied, Phase::Execute, message))
}

/// An approver that repeats the recorded decisions about calls. It approves a call without a recorded decision, because
/// that call ran without an approval.
pub(super) struct RecordedApprover {
    pub(super) calls: Arc<CallReplay>,
    /// The approver that decides after the fork; `None` to repeat recorded decisions there too.
    pub(super) continuation: Option<Arc<dyn Approver>>,
}

#[async_trait]
impl Approver for RecordedApprover {
    async fn approve(&self, request: ApprovalRequest, context: &ToolContext) -> ApprovalAnswer {
        if let (true, Some(approver)) = (self.calls.is_at_or_after_fork(&request.id), &self.continuation) {
            return approver.approve(request, context).await;
        }
        let Some(recorded) = self.calls.recording.decisions.get(&request.id) else {
            return Approval::Approved.into();
        };
        let reason = recorded.reason.clone().unwrap_or_default();
        match (recorded.decision, &recorded.arguments) {
            (ApprovalDecision::Approved, _) => Approval::Approved,
            (ApprovalDecision::Edited, Some(arguments)) => Approval::Edited {
                arguments: arguments.clone(),
            },
            (ApprovalDecision::Denied, _) => Approval::Denied { reason },
            _ => Approval::Unanswered { reason },
        }
        .into()
    }

    fn is_sequential(&self) -> bool {
        self.continuation
            .as_ref()
            .is_some_and(|approver| approver.is_sequential())
    }
}
