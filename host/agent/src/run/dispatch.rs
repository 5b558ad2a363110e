//! Execution of the calls of one response: they run concurrently if possible, and are answered in call order.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::call_queue::{CallOutcome, CallQueue, CallState, FinishedCall, PendingCall};
use super::call_result::{record_call, record_guidance, record_refusal};
use super::call_start::CallStart;
use super::child_calls::ParentCall;
use super::earlier_calls::EarlierCalls;
use super::ending::{EndRequests, Ending};
use super::nested_calls::NestedCaller;
use super::observed_output::ObservedOutput;
use super::observed_respondent::ObservedRespondent;
use super::prepared_call::PreparedCall;
use super::refusal::{not_run, redefined_tool, removed_tool, shortened_name, tool_in_facade, unknown_tool};
use super::run_state::RunState;
use crate::event::RecordedOutcome;
use crate::injection::{CallGate, CallableTools};
use crate::journal::Journal;
use crate::limits::UnknownToolPolicy;
use crate::model::ToolDelivery;
use crate::outcome::RunFailure;
use crate::toolbox::facade_path;
use toolwit_core::decode_encoded_values;
use toolwit_core::{Arguments, NamedTool, ToolContext, ToolDefinition, ToolLookup};
use toolwit_core::{Error, ErrorKind};

/// The limits on how many calls of one response may run.
pub(super) struct CallQuota {
    /// Maximum number of calls of one response.
    pub(super) per_response: usize,
    /// The number of calls that the call limit of the run and the budgets still allow.
    pub(super) calls_left: usize,
}

impl CallQuota {
    /// Returns the error for the call at an index of the response, or `None` if the limits allow the call.
    fn refusal(&self, index: usize) -> Option<Error> {
        if index >= self.calls_left {
            return Some(not_run(ErrorKind::LoopLimit, "the run has no tool calls left"));
        }
        (index >= self.per_response).then(|| {
            let reason = format!("too many calls in one response; at most {} are run", self.per_response);
            not_run(ErrorKind::LoopLimit, &reason).with_suggestion("repeat the calls that are still needed")
        })
    }
}

/// The calls of one response while they are executed.
///
/// Calls whose tool exists at the start and is not gated by a strategy run concurrently, except that calls of one
/// serial group run one after the other. An earlier call may inject, unlock or rebind the tool of a later one.
/// Therefore, if the tool of a call does not exist, is gated, or may be changed by an [earlier call](EarlierCalls), it
/// is looked up again when all calls before it are answered. Results and injections are applied in call order.
pub(super) struct Dispatch<'l, 'c> {
    run: &'l mut RunState<'c>,
    queue: CallQueue,
    end_requests: EndRequests,
    /// The reason why the run must stop before all calls have ended: it was cancelled, or reached its time limit.
    stop_failure: Option<RunFailure>,
    /// The last unknown tool name that a call of this response used.
    unknown_name: Option<String>,
}

impl<'l, 'c> Dispatch<'l, 'c> {
    /// Looks up the calls of a response, and refuses those that a person has denied and those beyond the quota.
    pub(super) fn new(run: &'l mut RunState<'c>, calls: Vec<PreparedCall>, quota: &CallQuota) -> Self {
        let toolbox = &run.conversation.toolbox;
        let is_gateway = toolbox.delivery() == ToolDelivery::Gateway;
        let mut earlier_calls = EarlierCalls::default();
        let calls = calls.into_iter().enumerate().map(|(index, call)| {
            let call = if is_gateway { call.resolve_gateway() } else { call };
            let denial = run.conversation.denied_calls.get(&call.history_call.id).cloned();
            let refusal = denial.or_else(|| quota.refusal(index));
            let state = match (refusal, toolbox.look_up(&call.requested_name)) {
                (Some(error), _) => CallState::Refused(error),
                (None, ToolLookup::Found(tool)) => {
                    let must_wait = earlier_calls.may_change(&tool, toolbox) || run.gate(&tool) != CallGate::Ungated;
                    earlier_calls.add(Some(&tool));
                    if must_wait {
                        CallState::Unresolved(Some(tool.definition))
                    } else {
                        CallState::of_tool(tool, &call)
                    }
                }
                (None, _) => {
                    earlier_calls.add(None);
                    CallState::Unresolved(None)
                }
            };
            (call, state)
        });
        let queue = CallQueue::new(calls);
        Self {
            run,
            queue,
            end_requests: EndRequests::default(),
            stop_failure: None,
            unknown_name: None,
        }
    }

    /// Sets the requests to end the run that calls of this response made in an earlier process.
    pub(super) fn with_end_requests(mut self, end_requests: EndRequests) -> Self {
        self.end_requests = end_requests;
        self
    }

    /// Runs the calls and answers each of them. Returns the end of the run, or `None` if the run continues with another
    /// inference.
    ///
    /// # Errors
    /// [`RunFailure`] if the run was stopped, a tool failed in a way that only the operator can fix, or the model
    /// called unknown tools too often.
    pub(super) async fn run(mut self) -> Result<Option<Ending>, RunFailure> {
        while let Some(mut call) = self.queue.pop() {
            if let CallState::Unresolved(definition) = &call.state {
                call.state = self.resolve(&call.prepared, definition.as_deref());
            }
            match call.state {
                CallState::Finished(
                    _,
                    FinishedCall {
                        outcome: CallOutcome::NotPermitted(error),
                        ..
                    },
                ) => {
                    record_refusal(self.run, &call.prepared.history_call, &error);
                }
                CallState::Finished(tool, finished) => {
                    record_call(self.run, call.prepared, tool, finished, &mut self.end_requests);
                }
                CallState::Refused(error) => record_refusal(self.run, &call.prepared.history_call, &error),
                CallState::Guided(name, guidance) => {
                    record_guidance(self.run, &call.prepared.history_call, name, guidance)
                }
                _ => self.advance(call).await,
            }
        }
        self.ending()
    }

    /// Looks up the tool of a call, after all earlier calls are answered. `earlier_definition` is the definition for which
    /// the model wrote the arguments; `None` if the tool did not exist then.
    fn resolve(&mut self, call: &PreparedCall, earlier_definition: Option<&ToolDefinition>) -> CallState {
        let toolbox = &self.run.conversation.toolbox;
        let requested = &call.requested_name;
        match toolbox.look_up(requested) {
            ToolLookup::Found(tool) => match self.run.gate(&tool) {
                CallGate::Locked(guidance) => CallState::Guided(tool.name, guidance),
                _ if earlier_definition.is_some_and(|earlier| earlier.input_schema != tool.definition.input_schema) => {
                    CallState::Refused(redefined_tool(&tool))
                }
                _ => CallState::of_tool(tool, call),
            },
            ToolLookup::Removed(id) => CallState::Refused(removed_tool(requested, &id, toolbox)),
            ToolLookup::Unknown(nearest) => match facade_path(requested, toolbox.callable()) {
                Some(path) => CallState::Refused(tool_in_facade(requested, &path)),
                None => {
                    self.unknown_name = Some(requested.clone());
                    CallState::Refused(unknown_tool(requested, &nearest, toolbox.callable()))
                }
            },
        }
    }

    /// Puts the first unanswered call back into the queue, and starts every call that can start. Then waits until a
    /// call ends or the run must stop.
    async fn advance(&mut self, unanswered: PendingCall) {
        let Self { run, queue, .. } = self;
        queue.push_front(unanswered);
        queue.start_ready(|call, tool| begin_call(run, call, tool));
        if queue.is_idle() {
            return;
        }
        tokio::select! {
            biased;
            failure = run.stop.wait(), if self.stop_failure.is_none() => {
                queue.stop();
                self.stop_failure = Some(failure);
            }
            () = queue.finish_next() => {}
        }
    }

    /// Returns the end of the run after all calls are answered, or `None` if the run continues.
    fn ending(self) -> Result<Option<Ending>, RunFailure> {
        if let Some(failure) = self.stop_failure {
            return Err(failure);
        }
        if let Some(ending) = self.end_requests.ending()? {
            return Ok(Some(ending));
        }
        check_unknown_streak(self.run, self.unknown_name.as_deref())?;
        Ok(None)
    }
}

/// Counts the consecutive responses with an unknown tool name. `unknown_name` is the unknown name of this response, if
/// any.
///
/// # Errors
/// [`RunFailure::UnknownTools`] if the conversation's policy ends the run after this number of responses.
fn check_unknown_streak(run: &mut RunState<'_>, unknown_name: Option<&str>) -> Result<(), RunFailure> {
    let Some(name) = unknown_name else {
        run.tally.unknown_streak = 0;
        return Ok(());
    };
    run.tally.unknown_streak += 1;
    let times = run.tally.unknown_streak;
    match run.conversation.limits.unknown_tools {
        UnknownToolPolicy::StopAfter(max) if times >= max => Err(RunFailure::UnknownTools {
            requested: shortened_name(name),
            times,
            available: run.conversation.toolbox.declared_names(),
        }),
        _ => Ok(()),
    }
}

/// Marks the tool of a call as called, and returns the future of the call. The future borrows nothing. It runs the
/// tool, or returns the outcome from the journal if the call must not run again.
pub(super) fn begin_call(
    run: &mut RunState<'_>,
    call: &PreparedCall,
    tool: NamedTool,
) -> BoxFuture<'static, FinishedCall> {
    let events = run.conversation.toolbox.mark_called(&tool.name);
    run.emit_and_record(&events);
    if let Some(outcome) = run.conversation.recovered_outcomes.remove(&call.history_call.id) {
        tracing::debug!(tool = %tool.name, "the outcome of a tool call comes from the journal");
        return finish_recovered(run.context.clone(), call.arguments.clone().ok(), tool, outcome).boxed();
    }
    tracing::debug!(tool = %tool.name, "a tool call starts");
    // Guards, interceptors and the journal see the values that the tool gets.
    let arguments = call.arguments.clone().unwrap_or_default();
    let arguments = decode_encoded_values(&tool.definition.input_schema, arguments);
    let id = &call.history_call.id;
    let context = if run.receives_late_results {
        run.conversation.late_results.context_for_call(id, &run.context)
    } else {
        run.context.clone()
    };
    let parent = ParentCall::new(run, id, &tool.definition.id);
    let context = parent.add_to(context);
    let context = ObservedOutput::observe(context, &run.conversation.observers, id);
    let earlier_answers = run.conversation.earlier_answers.remove(id).unwrap_or_default();
    let mut context = ObservedRespondent::observe(context, &run.conversation.observers, id, earlier_answers);
    if tool.tool.calls_tools() {
        context = context.with_tools(Arc::new(NestedCaller::new(run, parent)));
    }
    if tool.definition.id.is_host() {
        context = context.with_extension(CallableTools::new(run.conversation.toolbox.callable().clone()));
    }
    let call_start = CallStart {
        id: call.history_call.id.clone(),
        tool,
        arguments,
        context,
        observers: run.conversation.observers.clone(),
        journal: Journal::of(&run.context).cloned(),
        earlier_start: run.conversation.earlier_starts.remove(id),
    };
    call_start.start().boxed()
}

/// Returns the end of a call that does not run again, from its recorded outcome. A facade reveals its tools again.
async fn finish_recovered(
    context: ToolContext,
    arguments: Option<Arguments>,
    tool: NamedTool,
    outcome: RecordedOutcome,
) -> FinishedCall {
    let omission = outcome.omission();
    let mut returned = outcome.into_call_result();
    if let Ok(result) = &mut returned {
        if let Some(omission) = omission {
            result.for_llm.push_str(&format!("\n[{omission}]"));
        }
        if let (Some(facade), false, Some(arguments)) = (tool.tool.facade(), result.is_error(), &arguments) {
            result.revealed_tools = facade.make_again(arguments, &context).await;
        }
    }
    FinishedCall::new(CallOutcome::Returned(Box::new(returned)), Duration::ZERO)
}
