//! The calls of one response: run together where they may, answered in call order.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep_until};

use super::event::Event;
use super::failure::RunFailure;
use super::history::{interrupted, told};
use super::outcome::CallRecord;
use super::prepare::{Prepared, not_run, removed_tool, unknown_tool, with_expectation};
use super::tool_loop::ToolLoop;
use crate::error::{Error, ErrorKind, Phase};
use crate::injection::{CompletedCall, Injection, InjectionContext};
use crate::tool::{Arguments, Lookup, NamedTool, ToolContext, ToolError, ToolResult};

/// How long tools may take to end after they were told to stop. A plugin's call ends within milliseconds; Rust code that
/// does not listen is dropped.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// What follows from the calls of one response.
pub(super) enum Verdict {
    /// The model reads the answers.
    Continue,
    /// A result is the answer.
    Direct(String),
    /// The run is over.
    Failed(RunFailure),
}

/// The calls of one response while they are worked off.
///
/// Those whose tool is there at the start run together, except that calls of one serial group run one after the other. A
/// name that is not there yet may come in by an earlier call: it is looked up when all calls before it are answered.
/// Answers and injections are taken in call order.
pub(super) struct Dispatch<'l, 'c> {
    run: &'l mut ToolLoop<'c>,
    slots: Vec<Slot>,
    /// The first slot that is not answered.
    next: usize,
    running: FuturesUnordered<BoxFuture<'static, (usize, Finished)>>,
    /// Why nothing more is begun.
    halted: Option<Error>,
    /// When tools that were told to stop are dropped.
    grace: Option<Instant>,
    stopped: Option<RunFailure>,
    tool_failure: Option<Error>,
    direct: Option<String>,
    unknown: Option<String>,
}

struct Slot {
    prepared: Prepared,
    state: State,
}

enum State {
    /// Its name stands for nothing yet.
    Unresolved,
    Waiting(NamedTool),
    Running(NamedTool),
    Done(NamedTool, Finished),
    Refused(Error),
}

/// A call that came to its end.
struct Finished {
    outcome: Outcome,
    wall: Duration,
}

enum Outcome {
    Answered(Result<ToolResult, ToolError>),
    Panicked,
    /// It did not end when it was told to stop.
    Abandoned,
}

impl<'l, 'c> Dispatch<'l, 'c> {
    /// Takes the calls of a response, the first `allowed` of which may run.
    pub(super) fn new(run: &'l mut ToolLoop<'c>, calls: Vec<Prepared>, allowed: &Allowance) -> Self {
        let slots = calls
            .into_iter()
            .enumerate()
            .map(|(index, prepared)| {
                let state = match allowed.refuse(index) {
                    Some(error) => State::Refused(error),
                    None => match run.conversation.toolbox.look_up(&prepared.wanted) {
                        Lookup::Found(tool) => admit(tool, &prepared),
                        _ => State::Unresolved,
                    },
                };
                Slot { prepared, state }
            })
            .collect();
        Self {
            run,
            slots,
            next: 0,
            running: FuturesUnordered::new(),
            halted: None,
            grace: None,
            stopped: None,
            tool_failure: None,
            direct: None,
            unknown: None,
        }
    }

    /// Runs what may run and answers every call.
    pub(super) async fn run(mut self) -> Verdict {
        while self.next < self.slots.len() {
            self.resolve_next();
            self.start();
            match self.take_settled() {
                Some(Settled::Done(tool, finished)) => self.answer_done(tool, finished),
                Some(Settled::Refused(error)) => self.answer_refused(&error),
                None => self.wait().await,
            }
        }
        self.verdict()
    }

    /// Looks the next call's name up again, now that the calls before it are answered.
    fn resolve_next(&mut self) {
        let slot = &mut self.slots[self.next];
        if !matches!(slot.state, State::Unresolved) {
            return;
        }
        let toolbox = &self.run.conversation.toolbox;
        let wanted = &slot.prepared.wanted;
        slot.state = match toolbox.look_up(wanted) {
            Lookup::Found(tool) => admit(tool, &slot.prepared),
            Lookup::Removed(_) => State::Refused(removed_tool(wanted)),
            Lookup::Unknown(nearest) => {
                self.unknown = Some(wanted.clone());
                let known: Vec<_> = toolbox.declared().iter().map(|tool| tool.name.clone()).collect();
                State::Refused(unknown_tool(wanted, &nearest, &known))
            }
        };
    }

    /// Starts every call that need not wait for another.
    fn start(&mut self) {
        let mut busy = HashSet::new();
        let mut unresolved = false;
        for index in self.next..self.slots.len() {
            let slot = &mut self.slots[index];
            match &slot.state {
                State::Unresolved => unresolved = true,
                State::Running(tool) => busy.extend(tool.tool.serial_group()),
                State::Done(..) | State::Refused(_) => {}
                State::Waiting(tool) => {
                    let group = tool.tool.serial_group();
                    if let Some(reason) = &self.halted {
                        slot.state = State::Refused(reason.clone());
                    } else if group.is_some_and(|group| unresolved || busy.contains(&group)) {
                        busy.extend(group);
                    } else {
                        busy.extend(group);
                        let tool = tool.clone();
                        self.begin(index, tool);
                    }
                }
            }
        }
    }

    fn begin(&mut self, index: usize, tool: NamedTool) {
        let slot = &mut self.slots[index];
        let arguments = slot.prepared.arguments.clone().unwrap_or_default();
        let id = slot.prepared.call.id.clone();
        slot.state = State::Running(tool.clone());
        let events = self.run.conversation.toolbox.called(&tool.name);
        self.run.emit_all(&events);
        self.run.emit(&Event::ToolStarted {
            id,
            name: tool.name.clone(),
            tool: tool.definition.id.clone(),
        });
        let context = self.run.context.clone();
        self.running.push(Box::pin(async move { (index, call(tool, arguments, context).await) }));
    }

    /// Waits for one call to end, for the wish to stop, or for the patience with those that do not stop.
    async fn wait(&mut self) {
        let grace = self.grace;
        let patience = async move {
            match grace {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            failure = self.run.stop.requested(), if self.stopped.is_none() => {
                let kind = ErrorKind::Cancelled;
                self.halted.get_or_insert_with(|| not_run(kind, "the run was stopped"));
                self.grace = Some(Instant::now() + STOP_GRACE);
                self.stopped = Some(failure);
            }
            Some((index, finished)) = self.running.next() => self.finish(index, finished),
            () = patience => self.abandon(),
        }
    }

    fn finish(&mut self, index: usize, finished: Finished) {
        if let Outcome::Answered(Err(ToolError::Operator(_))) = &finished.outcome {
            let reason = "another tool of this response failed and its operator must look into it";
            self.halted.get_or_insert_with(|| not_run(ErrorKind::ToolUnavailable, reason));
        }
        let slot = &mut self.slots[index];
        if let State::Running(tool) = &slot.state {
            slot.state = State::Done(tool.clone(), finished);
        }
    }

    fn abandon(&mut self) {
        self.running.clear();
        for index in self.next..self.slots.len() {
            let outcome = Outcome::Abandoned;
            self.finish(
                index,
                Finished {
                    outcome,
                    wall: STOP_GRACE,
                },
            );
        }
    }

    /// Takes the next slot's end, if it came to it.
    fn take_settled(&mut self) -> Option<Settled> {
        let state = &mut self.slots[self.next].state;
        if !matches!(state, State::Done(..) | State::Refused(_)) {
            return None;
        }
        match std::mem::replace(state, State::Unresolved) {
            State::Done(tool, finished) => Some(Settled::Done(tool, finished)),
            State::Refused(error) => Some(Settled::Refused(error)),
            _ => None,
        }
    }

    fn answer_refused(&mut self, error: &Error) {
        let prepared = &self.slots[self.next].prepared;
        let content = told(error);
        self.run.conversation.history.answer(&prepared.call, content.clone(), true);
        self.run.emit(&Event::CallRefused {
            id: prepared.call.id.clone(),
            name: prepared.call.name.clone(),
            kind: error.kind,
            content,
        });
        self.next += 1;
    }

    fn answer_done(&mut self, tool: NamedTool, finished: Finished) {
        let wall_ms = u64::try_from(finished.wall.as_millis()).unwrap_or(u64::MAX);
        let answer = self.answer(&tool, finished.outcome);
        let prepared = &self.slots[self.next].prepared;
        let (call, arguments) = (prepared.call.clone(), prepared.arguments.clone().unwrap_or_default());
        let full = answer.result.content();
        let cut = self.run.conversation.pages.cut(&full);
        let content = cut.as_ref().map_or_else(|| full.clone(), |cut| cut.content.clone());
        let is_error = answer.result.is_error;
        self.run.conversation.history.answer(&call, content.clone(), is_error);
        self.run.tally.calls.push(CallRecord {
            id: call.id.clone(),
            name: tool.name.clone(),
            tool: tool.definition.id.clone(),
            is_error,
            wall_ms,
        });
        self.run.emit(&Event::ToolFinished {
            id: call.id.clone(),
            name: tool.name.clone(),
            tool: tool.definition.id.clone(),
            wall_ms,
            is_error,
            kind: answer.kind,
            content,
        });
        self.next += 1;
        self.tell_user(&answer.result);
        if answer.result.return_direct && !is_error && self.direct.is_none() {
            self.direct = Some(full.clone());
        }
        let completed = CompletedCall::new(call.id.clone(), tool.name.clone(), arguments, tool.tool, answer.result);
        let mut injection = self.evaluate(&completed);
        if let Some(cut) = cut {
            self.run.emit(&Event::ResultCut {
                id: call.id,
                result: cut.result,
                bytes: full.len(),
                shown_bytes: cut.shown_bytes,
            });
            injection.merge(self.run.conversation.reader_when_missing());
        }
        let events = self.run.conversation.toolbox.apply(injection, &tool.name);
        self.run.emit_all(&events);
    }

    /// Turns what came of a call into what the model reads, and says what went wrong.
    fn answer(&mut self, tool: &NamedTool, outcome: Outcome) -> Answer {
        let name = &tool.name;
        match outcome {
            Outcome::Answered(Ok(result)) => {
                if let Some(source) = &result.source {
                    tracing::warn!(tool = %name, error = %source, "the tool failed");
                }
                let kind = result.is_error.then_some(ErrorKind::Tool);
                Answer { result, kind }
            }
            Outcome::Answered(Err(ToolError::Operator(error))) => {
                tracing::error!(tool = %name, error = %error, "the tool failed; the run stops");
                let answer = Answer::error(&not_run(error.kind, "the tool's operator must look into it first"));
                self.tool_failure.get_or_insert(error.with_tool(name.as_str()));
                answer
            }
            Outcome::Answered(Err(error)) => {
                let error = with_expectation(error, &tool.definition, name);
                tracing::debug!(tool = %name, error = %error.report(), "the call could not be made");
                Answer::error(error.report())
            }
            Outcome::Panicked => {
                tracing::error!(tool = %name, "the tool panicked");
                let message = "the tool broke inside the host; the call may have taken effect";
                Answer::error(&Error::new(ErrorKind::Internal, Phase::Execute, message).with_tool(name.as_str()))
            }
            Outcome::Abandoned => Answer::error(&interrupted().with_tool(name.as_str())),
        }
    }

    fn tell_user(&self, result: &ToolResult) {
        let Some(text) = result.for_user.as_deref().filter(|_| !result.silent) else {
            return;
        };
        let output = self.run.context.output();
        if catch_unwind(AssertUnwindSafe(|| output.communicate(text))).is_err() {
            tracing::warn!("the output to the user panicked; the message is lost");
        }
    }

    /// Asks the strategy. One that panics changes nothing.
    fn evaluate(&self, call: &CompletedCall) -> Injection {
        let conversation = &self.run.conversation;
        let context = InjectionContext::new(
            conversation.history.messages(),
            conversation.toolbox.callable(),
            conversation.toolbox.entities(),
            call,
            self.run.tally.iterations,
        );
        catch_unwind(AssertUnwindSafe(|| conversation.strategy.evaluate(&context))).unwrap_or_else(|_| {
            tracing::error!(tool = %call.name, "an injection strategy panicked; it changes nothing");
            self.run.emit(&Event::StrategyFailed {
                trigger: call.name.clone(),
                message: "the strategy panicked".to_owned(),
            });
            Injection::none()
        })
    }

    fn verdict(self) -> Verdict {
        let run = self.run;
        if let Some(failure) = self.stopped {
            return Verdict::Failed(failure);
        }
        if let Some(error) = self.tool_failure {
            return Verdict::Failed(RunFailure::Tool(error));
        }
        if let Some(answer) = self.direct {
            return Verdict::Direct(answer);
        }
        run.note_unknown(self.unknown).map_or(Verdict::Continue, Verdict::Failed)
    }
}

/// The end of a slot that can be answered now.
enum Settled {
    Done(NamedTool, Finished),
    Refused(Error),
}

/// What the model reads, and what went wrong.
struct Answer {
    result: ToolResult,
    kind: Option<ErrorKind>,
}

impl Answer {
    fn error(error: &Error) -> Self {
        Self {
            result: ToolResult::error(told(error)),
            kind: Some(error.kind),
        }
    }
}

/// How many calls of a response may run.
pub(super) struct Allowance {
    /// In one response.
    pub(super) per_response: usize,
    /// In what is left of the run.
    pub(super) left: usize,
}

impl Allowance {
    fn refuse(&self, index: usize) -> Option<Error> {
        if index >= self.left {
            let reason = "the run has no tool calls left";
            return Some(not_run(ErrorKind::LoopLimit, reason));
        }
        (index >= self.per_response).then(|| {
            let reason = format!("too many calls in one response; at most {} are run", self.per_response);
            not_run(ErrorKind::LoopLimit, &reason).with_suggestion("call again those that are still needed")
        })
    }
}

/// A call whose arguments cannot be read is answered and never begun.
fn admit(tool: NamedTool, prepared: &Prepared) -> State {
    match &prepared.arguments {
        Ok(_) => State::Waiting(tool),
        Err(error) => {
            let error = with_expectation(ToolError::Model(error.clone()), &tool.definition, &tool.name);
            State::Refused(error.report().clone())
        }
    }
}

/// Calls a tool; a panic in it is an outcome like others.
async fn call(tool: NamedTool, arguments: Arguments, context: ToolContext) -> Finished {
    let started = Instant::now();
    let body = async move { tool.tool.call(arguments, &context).await };
    let outcome = match AssertUnwindSafe(body).catch_unwind().await {
        Ok(result) => Outcome::Answered(result),
        Err(_) => Outcome::Panicked,
    };
    Finished {
        outcome,
        wall: started.elapsed(),
    }
}
