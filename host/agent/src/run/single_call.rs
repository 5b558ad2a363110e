//! Single calls: calls of a person, a program or a client, without a model.

use std::pin::pin;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{Instant, sleep};

use super::call_queue::{CallOutcome, FinishedCall, STOP_GRACE};
use super::call_result::{record_call, withhold_revealed_tools};
use super::dispatch::begin_call;
use super::ending::EndRequests;
use super::prepared_call::PreparedCall;
use super::refusal::{not_run, removed_tool, tool_in_facade, unknown_tool};
use super::run_state::{DetachedRun, RunState};
use crate::injection::CallGate;
use crate::outcome::RunFailure;
use crate::state::ConversationState;
use crate::toolbox::facade_path;
use toolwit_core::{
    Arguments, Error, ErrorKind, NamedTool, ToolCall, ToolContext, ToolError, ToolId, ToolLookup, ToolResult,
};

/// The outcome of starting a single call.
pub(crate) enum SingleCallStart {
    /// The call can run.
    Ready(Box<SingleCall>),
    /// The call does not run, because no tool with this name can be called.
    Refused(Error),
    /// The tool is locked. The text describes how to unlock it.
    Locked(String),
}

/// A call that can run. It does not borrow the conversation, so that other calls can run at the same time.
pub(crate) struct SingleCall {
    run: DetachedRun,
    prepared: PreparedCall,
    tool: NamedTool,
    /// The future that checks whether the call may run, and runs the tool.
    body: BoxFuture<'static, FinishedCall>,
}

/// A call that ended. Its result is not yet applied to the conversation.
pub(crate) struct EndedCall {
    run: DetachedRun,
    prepared: PreparedCall,
    tool: NamedTool,
    finished: FinishedCall,
}

/// The result of a single call, after it was applied to the conversation.
pub(crate) struct SingleCallAnswer {
    /// The id of the tool that was called.
    pub(crate) tool: ToolId,
    /// The result. It is an error result if the call could not run to its end.
    pub(crate) result: ToolResult,
    /// Whether the declared tools changed.
    pub(crate) has_changed_tools: bool,
    /// The kind of the error, if the call could not run to its end.
    pub(crate) error_kind: Option<ErrorKind>,
}

impl SingleCall {
    /// Looks up the tool, checks whether the strategies lock it, and prepares the call. Each call is a turn of its own.
    pub(crate) fn start(
        conversation: &mut ConversationState,
        name: &str,
        arguments: Arguments,
        context: &ToolContext,
    ) -> SingleCallStart {
        conversation.turns = conversation.turns.saturating_add(1);
        let id = format!("call-{}", conversation.turns);
        let mut run = RunState::new(conversation, context);
        run.receives_late_results = false;
        let tool = match look_up(&run, name) {
            Ok(tool) => tool,
            Err(error) => return SingleCallStart::Refused(error),
        };
        if let CallGate::Locked(guidance) = run.gate(&tool) {
            return SingleCallStart::Locked(guidance);
        }
        let history_call = ToolCall {
            id,
            name: tool.name.to_string(),
            // These arguments would only appear in the history, which is cleared after the call.
            arguments: String::new(),
        };
        let prepared = PreparedCall {
            history_call,
            requested_name: name.to_owned(),
            arguments: Ok(arguments),
            is_repaired: false,
        };
        let body = begin_call(&mut run, &prepared, tool.clone());
        SingleCallStart::Ready(Box::new(Self {
            run: run.detach(),
            prepared,
            tool,
            body,
        }))
    }

    /// Returns the serial group of the call. Calls of one group must not run at the same time.
    pub(crate) fn serial_group(&self) -> Option<u64> {
        self.prepared.serial_group(&self.tool)
    }

    /// Acquires `lock`, if there is one, and holds it while the call runs. If the call is cancelled before it begins, or
    /// reaches its deadline while it waits for the lock, it does not run. After a later cancellation or deadline, the
    /// tool has [`STOP_GRACE`] to end by itself.
    pub(crate) async fn run<G>(self, lock: Option<impl Future<Output = G>>) -> EndedCall {
        let Self {
            run,
            prepared,
            tool,
            body,
        } = self;
        let lock_result = if run.stop.is_cancelled() {
            Err(RunFailure::Cancelled)
        } else if let Some(lock) = lock {
            tokio::select! {
                biased;
                failure = run.stop.wait() => Err(failure),
                guard = lock => Ok(Some(guard)),
            }
        } else {
            Ok(None)
        };
        let _guard = match lock_result {
            Ok(guard) => guard,
            Err(failure) => {
                return EndedCall {
                    run,
                    prepared,
                    tool,
                    finished: finish_without_start(&failure),
                };
            }
        };
        let started = Instant::now();
        let mut body = pin!(body);
        let finished_before_stop = tokio::select! {
            biased;
            finished = &mut body => Some(finished),
            _ = run.stop.wait() => None,
        };
        let finished = match finished_before_stop {
            Some(finished) => finished,
            None => tokio::select! {
                biased;
                finished = &mut body => finished,
                () = sleep(STOP_GRACE) => FinishedCall::new(CallOutcome::Abandoned, started.elapsed()),
            },
        };
        EndedCall {
            run,
            prepared,
            tool,
            finished,
        }
    }
}

/// Returns the end of a call that did not start, because the call was cancelled or its deadline was reached.
fn finish_without_start(failure: &RunFailure) -> FinishedCall {
    let error = match failure {
        RunFailure::Cancelled => not_run(ErrorKind::Cancelled, "the call was cancelled before it began"),
        failure => not_run(ErrorKind::LoopLimit, &failure.to_string()),
    };
    let outcome = CallOutcome::Returned(Box::new(Err(ToolError::Model(error))));
    FinishedCall::new(outcome, Duration::ZERO)
}

impl EndedCall {
    /// Applies the result to the conversation: sends the text for the user, and lets the strategies add and remove tools.
    pub(crate) fn record(self, conversation: &mut ConversationState) -> SingleCallAnswer {
        let tool = self.tool.definition.id.clone();
        // A single call has no loop that a tool could end, so requests to end the loop are ignored.
        let mut end_requests = EndRequests::default();
        let mut run = RunState::reattach(conversation, self.run);
        let mut finished = self.finished;
        // Another call of the session may have changed the caller in the meantime.
        if let (true, CallOutcome::Returned(returned)) = (run.has_other_caller(), &mut finished.outcome)
            && let Ok(result) = &mut **returned
        {
            withhold_revealed_tools(result, &self.tool.name);
        }
        let (result, error_kind) = record_call(&mut run, self.prepared, self.tool, finished, &mut end_requests);
        let has_changed_tools = run.tally.has_changed_declarations;
        drop(run);
        conversation.history.clear();
        if has_changed_tools {
            // Starting a turn updates the declared tools: a removed tool stays declared until then.
            conversation.toolbox.start_turn();
        }
        SingleCallAnswer {
            tool,
            result,
            has_changed_tools,
            error_kind,
        }
    }
}

/// Returns the tool of this name.
///
/// # Errors
/// [`Error`] for the caller if no tool has the name, the tool is inside a closed facade, or it was removed.
fn look_up(run: &RunState<'_>, name: &str) -> Result<NamedTool, Error> {
    let toolbox = &run.conversation.toolbox;
    match toolbox.look_up(name) {
        ToolLookup::Found(tool) => Ok(tool),
        ToolLookup::Removed(id) => Err(removed_tool(name, &id, toolbox)),
        ToolLookup::Unknown(nearest) => Err(match facade_path(name, toolbox.callable()) {
            Some(path) => tool_in_facade(name, &path),
            None => unknown_tool(name, &nearest, toolbox.callable()),
        }),
    }
}
