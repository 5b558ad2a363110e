//! The queue of the calls of one response: it starts them and collects their outcomes.

use std::collections::{HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep_until};

use super::prepared_call::PreparedCall;
use super::refusal::{hidden_operator_error, not_run, panicked_call, with_expected_parameters};
use crate::event::RecordedOutcome;
use crate::state::{cancelled_call, error_text};
use toolwit_core::{Arguments, NamedTool, ToolContext, ToolDefinition, ToolError, ToolName, ToolResult};
use toolwit_core::{Error, ErrorKind};

/// The time that calls have to end after their cancellation. A call of a plugin ends within milliseconds. The future of
/// a native tool that ignores its cancellation token is dropped.
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
    /// The tool is looked up after all earlier calls are answered, because it does not exist yet, or because a strategy or
    /// an earlier call may lock or change it. Contains the definition that the tool had when the model called it; `None`
    /// if the tool did not exist.
    Unresolved(Option<Arc<ToolDefinition>>),
    /// The call can start, unless an earlier call must end first.
    Waiting(NamedTool),
    /// The call has been running since this time.
    Running(NamedTool, Instant),
    /// The call ended, or was not permitted.
    Finished(NamedTool, FinishedCall),
    /// The call does not run, because it exceeds a limit, its tool or its arguments are invalid, or the run stops.
    Refused(Error),
    /// The call does not run, because its tool is locked. The model receives guidance on how to unlock it.
    Guided(ToolName, String),
}

impl CallState {
    /// Returns the state of a call whose tool was found: waiting, or refused if the arguments are invalid.
    pub(super) fn of_tool(tool: NamedTool, prepared: &PreparedCall) -> Self {
        match &prepared.arguments {
            Ok(_) => Self::Waiting(tool),
            Err(error) => {
                let error = with_expected_parameters(ToolError::Model(error.clone()), &tool.definition, &tool.name);
                Self::Refused(error.report().clone())
            }
        }
    }
}

/// The end of a call that started, or that was not permitted.
pub(super) struct FinishedCall {
    pub(super) outcome: CallOutcome,
    /// The time for which the tool ran. For an abandoned call, it includes the time of the decision whether the call may
    /// run.
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
    /// The call did not run, because an interceptor or the guard did not permit it.
    NotPermitted(Error),
}

impl CallOutcome {
    /// Returns the outcome in the form that a journal stores. If only the operator can fix an error, the text for the
    /// model omits its details.
    pub(super) fn to_recorded(&self, tool: &NamedTool) -> RecordedOutcome {
        let error = match self {
            Self::Returned(returned) => match returned.as_ref() {
                Ok(result) => return RecordedOutcome::of(result),
                Err(ToolError::Operator(error)) => {
                    let text = error_text(&hidden_operator_error(error.kind));
                    let error = error.clone().with_tool(tool.name.as_str());
                    return RecordedOutcome::failed_for_operator(&error, text);
                }
                Err(error) => Error::from(with_expected_parameters(error.clone(), &tool.definition, &tool.name)),
            },
            Self::NotPermitted(error) => error.clone(),
            Self::Panicked => panicked_call(),
            Self::Abandoned => cancelled_call(),
        };
        let mut outcome = RecordedOutcome::failed(error.kind, error_text(&error));
        outcome.denied = error.denied.clone();
        outcome
    }

    /// Returns the reason why no further call of the response may start after this one, or `None` if further calls may
    /// start.
    fn reason_to_refuse_starts(&self) -> Option<&'static str> {
        let Self::Returned(returned) = self else { return None };
        match returned.as_ref() {
            Err(ToolError::Operator(_)) => Some(TOOL_FAILED),
            Ok(result) if result.signal.is_some() => Some(TOOL_STOPPED_RUN),
            _ => None,
        }
    }
}

/// Runs a tool. A panic of the tool becomes [`CallOutcome::Panicked`].
pub(super) async fn run_tool(tool: NamedTool, arguments: Arguments, context: ToolContext) -> FinishedCall {
    let started = Instant::now();
    let body = async move { tool.tool.call(arguments, &context).await };
    let outcome = match AssertUnwindSafe(body).catch_unwind().await {
        Ok(returned) => CallOutcome::Returned(Box::new(returned)),
        Err(_) => CallOutcome::Panicked,
    };
    FinishedCall::new(outcome, started.elapsed())
}

/// The pending calls of a response, in order, and the futures of the running calls.
#[derive(Default)]
pub(super) struct CallQueue {
    pending: VecDeque<PendingCall>,
    /// The futures of the running calls. Each returns the index and the end of its call.
    running: FuturesUnordered<BoxFuture<'static, (usize, FinishedCall)>>,
    /// The error for the calls that have not started; `None` while calls may start.
    start_refusal: Option<Error>,
    /// The time at which the calls that still run are dropped; `None` before the run is stopped.
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

    /// Removes and returns the first pending call.
    pub(super) fn pop(&mut self) -> Option<PendingCall> {
        self.pending.pop_front()
    }

    /// Puts a call back at the front of the queue.
    pub(super) fn push_front(&mut self, call: PendingCall) {
        self.pending.push_front(call);
    }

    /// Starts every waiting call that does not have to wait for an earlier call. `begin` creates the future of a call. If
    /// no further call may start, refuses all waiting calls.
    ///
    /// The calls of a serial group, such as the calls on one live instance, run sequentially. A call of a serial group
    /// also waits for earlier calls whose tool is not resolved, because that tool may belong to the same group.
    pub(super) fn start_ready<F>(&mut self, mut begin: impl FnMut(&PreparedCall, NamedTool) -> F)
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
                    if let Some(error) = &self.start_refusal {
                        call.state = CallState::Refused(error.clone());
                    } else if !must_wait {
                        let (index, tool) = (call.index, tool.clone());
                        call.state = CallState::Running(tool.clone(), Instant::now());
                        let future = begin(&call.prepared, tool);
                        self.running.push(future.map(move |finished| (index, finished)).boxed());
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
        let end_of_grace = async move {
            match grace_end {
                Some(end) => sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some((index, finished)) = self.running.next() => {
                if let Some(reason) = finished.outcome.reason_to_refuse_starts() {
                    self.refuse_starts(ErrorKind::ToolUnavailable, reason);
                }
                if let Some(call) = self.pending.iter_mut().find(|call| call.index == index) {
                    call.finish(finished);
                }
            }
            () = end_of_grace => self.abandon_running(),
        }
    }

    /// Refuses the calls that have not started, and gives the running calls [`STOP_GRACE`] to end.
    pub(super) fn stop(&mut self) {
        self.refuse_starts(ErrorKind::Cancelled, "the run was stopped");
        self.grace_end = Some(Instant::now() + STOP_GRACE);
    }

    /// Refuses the calls that have not started.
    fn refuse_starts(&mut self, kind: ErrorKind, reason: &str) {
        self.start_refusal.get_or_insert_with(|| not_run(kind, reason));
    }

    /// Drops the running calls. Their outcome is [`CallOutcome::Abandoned`].
    fn abandon_running(&mut self) {
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
