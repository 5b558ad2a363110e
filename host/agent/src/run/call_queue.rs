//! The calls of one response, from their first lookup to their end.

use std::collections::{HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep_until};

use super::prepared_call::PreparedCall;
use super::refusal::{not_run, operator_error, panicked_call, with_expectation};
use crate::event::RecordedOutcome;
use crate::state::{error_text, interrupted_call};
use toolwit_core::{Arguments, NamedTool, ToolContext, ToolDefinition, ToolError, ToolName, ToolResult};
use toolwit_core::{Error, ErrorKind};

/// The time that tools have to end after their cancellation. A call of a plugin ends within milliseconds; native code
/// that ignores its cancellation token is dropped.
pub(super) const STOP_GRACE: Duration = Duration::from_secs(1);

/// The reason why no further call of a response may start after an error that only the operator can fix.
pub(super) const TOOL_FAILED: &str = "another tool of this response failed";

/// The reason why no further call of a response may start after a signal.
pub(super) const TOOL_STOPPED_RUN: &str = "another tool of this response stopped the run";

/// A call of a response that is not answered yet.
pub(super) struct PendingCall {
    /// The position of the call in the response.
    index: usize,
    pub(super) prepared: PreparedCall,
    pub(super) state: CallState,
}

/// The progress of a call.
pub(super) enum CallState {
    /// The tool is looked up when all calls before this one are answered: no tool has the name yet, or a strategy or an
    /// earlier call may lock or change the tool. Contains the definition that the tool had when the model called it, if
    /// it existed.
    Unresolved(Option<Arc<ToolDefinition>>),
    /// The call can start, unless an earlier call must end first.
    Waiting(NamedTool),
    /// The call has been running since this time.
    Running(NamedTool, Instant),
    Finished(NamedTool, FinishedCall),
    /// The call does not run, because it exceeds a limit, its tool or its arguments are invalid, or the run stops.
    Refused(Error),
    /// The call does not run, because its tool is locked. The model receives guidance on how to unlock it.
    Guided(ToolName, String),
}

impl CallState {
    /// Returns the state of a call whose tool may run: waiting, or refused if the arguments are invalid.
    pub(super) fn of_tool(tool: NamedTool, prepared: &PreparedCall) -> Self {
        match &prepared.arguments {
            Ok(_) => Self::Waiting(tool),
            Err(error) => {
                let error = with_expectation(ToolError::Model(error.clone()), &tool.definition, &tool.name);
                Self::Refused(error.report().clone())
            }
        }
    }
}

/// The end of a call that started, or that was not permitted.
pub(super) struct FinishedCall {
    pub(super) outcome: CallOutcome,
    /// The time for which the tool ran. For an abandoned call, it includes the decision whether the call may run.
    pub(super) wall: Duration,
    /// The arguments with which the call ran, if a person edited those of the model.
    pub(super) edited_arguments: Option<Arguments>,
}

impl FinishedCall {
    pub(super) fn new(outcome: CallOutcome, wall: Duration) -> Self {
        Self {
            outcome,
            wall,
            edited_arguments: None,
        }
    }

    /// Returns the end of a call that was not permitted.
    pub(super) fn not_permitted(error: Error) -> Self {
        Self::new(CallOutcome::NotPermitted(error), Duration::ZERO)
    }
}

/// The outcome of a call.
pub(super) enum CallOutcome {
    Returned(Box<Result<ToolResult, ToolError>>),
    Panicked,
    /// The call did not end within [`STOP_GRACE`] after its cancellation.
    Abandoned,
    /// An interceptor or the guard did not permit the call, so that it did not run.
    NotPermitted(Error),
}

impl CallOutcome {
    /// Returns the outcome as a journal records it. The text for the model has no details of an error that only the
    /// operator can fix.
    pub(super) fn to_recorded(&self, tool: &NamedTool) -> RecordedOutcome {
        let error = match self {
            Self::Returned(returned) => match returned.as_ref() {
                Ok(result) => return RecordedOutcome::of(result),
                Err(ToolError::Operator(error)) => {
                    let text = error_text(&operator_error(error.kind));
                    let error = error.clone().with_tool(tool.name.as_str());
                    return RecordedOutcome::failed_for_operator(&error, text);
                }
                Err(error) => Error::from(with_expectation(error.clone(), &tool.definition, &tool.name)),
            },
            Self::NotPermitted(error) => error.clone(),
            Self::Panicked => panicked_call(),
            Self::Abandoned => interrupted_call(),
        };
        let mut outcome = RecordedOutcome::failed(error.kind, error_text(&error));
        outcome.denied = error.denied.clone();
        outcome
    }

    /// Returns the reason why no further call of the response may start after this one, or `None` if further calls may
    /// start.
    fn halt_reason(&self) -> Option<&'static str> {
        let Self::Returned(returned) = self else { return None };
        match returned.as_ref() {
            Err(ToolError::Operator(_)) => Some(TOOL_FAILED),
            Ok(result) if result.signal.is_some() => Some(TOOL_STOPPED_RUN),
            _ => None,
        }
    }
}

/// Runs a tool. A panic of the tool becomes an outcome.
pub(super) async fn run_tool(tool: NamedTool, arguments: Arguments, context: ToolContext) -> FinishedCall {
    let started = Instant::now();
    let body = async move { tool.tool.call(arguments, &context).await };
    let outcome = match AssertUnwindSafe(body).catch_unwind().await {
        Ok(returned) => CallOutcome::Returned(Box::new(returned)),
        Err(_) => CallOutcome::Panicked,
    };
    FinishedCall::new(outcome, started.elapsed())
}

/// The pending calls of a response in order, and the futures of the running ones.
#[derive(Default)]
pub(super) struct CallQueue {
    pending: VecDeque<PendingCall>,
    running: FuturesUnordered<BoxFuture<'static, (usize, FinishedCall)>>,
    /// The error for the calls that have not started, if no further call may start.
    halt_error: Option<Error>,
    /// The time at which cancelled calls are dropped, if they still run.
    grace_end: Option<Instant>,
}

impl CallQueue {
    pub(super) fn new(calls: impl IntoIterator<Item = (PreparedCall, CallState)>) -> Self {
        let calls = calls.into_iter().enumerate();
        let pending = |(index, (prepared, state))| PendingCall { index, prepared, state };
        Self {
            pending: calls.map(pending).collect(),
            ..Self::default()
        }
    }

    pub(super) fn pop(&mut self) -> Option<PendingCall> {
        self.pending.pop_front()
    }

    /// Puts a call back at the front of the queue.
    pub(super) fn push_front(&mut self, call: PendingCall) {
        self.pending.push_front(call);
    }

    /// Starts every call that does not have to wait for another. If no further call may start, refuses all waiting
    /// calls.
    ///
    /// Calls of one serial group, such as those on one live object, run one after the other. A call of a serial group
    /// also waits for earlier calls whose tool is not resolved, since that tool may belong to the same group.
    pub(super) fn start<F>(&mut self, mut begin: impl FnMut(&PreparedCall, NamedTool) -> F)
    where
        F: Future<Output = FinishedCall> + Send + 'static,
    {
        let mut busy_groups = HashSet::new();
        let mut has_unresolved = false;
        for call in &mut self.pending {
            match &call.state {
                CallState::Unresolved(_) => has_unresolved = true,
                CallState::Running(tool, _) => busy_groups.extend(call.prepared.serial_group(tool)),
                CallState::Finished(..) | CallState::Refused(_) | CallState::Guided(..) => {}
                CallState::Waiting(tool) => {
                    let group = call.prepared.serial_group(tool);
                    let must_wait = group.is_some_and(|group| has_unresolved || busy_groups.contains(&group));
                    busy_groups.extend(group);
                    if let Some(error) = &self.halt_error {
                        call.state = CallState::Refused(error.clone());
                    } else if !must_wait {
                        let (index, tool) = (call.index, tool.clone());
                        call.state = CallState::Running(tool.clone(), Instant::now());
                        let body = begin(&call.prepared, tool);
                        self.running.push(body.map(move |finished| (index, finished)).boxed());
                    }
                }
            }
        }
    }

    /// Returns whether no call runs.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Waits until a running call ends. After the grace period of [`stop`](Self::stop), drops the calls that still run.
    pub(super) async fn finish_next(&mut self) {
        let grace_end = self.grace_end;
        let grace = async move {
            match grace_end {
                Some(end) => sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some((index, finished)) = self.running.next() => {
                if let Some(reason) = finished.outcome.halt_reason() {
                    self.halt(ErrorKind::ToolUnavailable, reason);
                }
                if let Some(call) = self.pending.iter_mut().find(|call| call.index == index) {
                    call.finish(finished);
                }
            }
            () = grace => self.abandon(),
        }
    }

    /// Lets no further call start, and gives the running calls [`STOP_GRACE`] to end.
    pub(super) fn stop(&mut self) {
        self.halt(ErrorKind::Cancelled, "the run was stopped");
        self.grace_end = Some(Instant::now() + STOP_GRACE);
    }

    /// Lets no further call start.
    fn halt(&mut self, kind: ErrorKind, reason: &str) {
        self.halt_error.get_or_insert_with(|| not_run(kind, reason));
    }

    /// Drops the running calls, which end as abandoned.
    fn abandon(&mut self) {
        self.running.clear();
        for call in &mut self.pending {
            if let CallState::Running(_, started) = &call.state {
                let wall = started.elapsed();
                call.finish(FinishedCall::new(CallOutcome::Abandoned, wall));
            }
        }
    }
}

impl PendingCall {
    /// Records the end of the call if it is running.
    fn finish(&mut self, finished: FinishedCall) {
        if let CallState::Running(tool, _) = &self.state {
            self.state = CallState::Finished(tool.clone(), finished);
        }
    }
}
