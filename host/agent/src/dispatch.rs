//! The calls of one response: run together where they may, answered in call order.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until};

use super::answer::Consequence;
use super::event::Event;
use super::failure::RunFailure;
use super::folded::{folded_tool, path_to};
use super::gateway::through;
use super::prepare::{Prepared, not_run, removed_tool, unknown_tool};
use super::slot::{Allowance, Finished, Outcome, Slot, State, admit, call};
use super::tool_loop::ToolLoop;
use crate::injection::CallGate;
use crate::model::Delivery;
use toolwit_core::{Error, ErrorKind};
use toolwit_core::{NamedTool, Signal, ToolLookup};

/// How long tools may take to end after they were told to stop. A plugin's call ends within milliseconds; Rust code that
/// does not listen is dropped.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// What follows from the calls of one response.
pub(super) enum Verdict {
    /// The model reads the answers.
    Continue,
    /// A result is the answer.
    Direct(String),
    /// A tool asks the run to stop.
    Signalled(Signal),
    /// The run is over.
    Failed(RunFailure),
}

/// The calls of one response while they are worked off.
///
/// Those whose tool is there at the start and watched by no strategy run together, except that calls of one serial group run
/// one after the other. A name that is not there yet may come in by an earlier call, and a locked tool may be unlocked by one:
/// such a call is looked up when all calls before it are answered.
/// Answers and injections are taken in call order.
pub(super) struct Dispatch<'l, 'c> {
    run: &'l mut ToolLoop<'c>,
    /// The calls that are not answered yet, each under its place in the response.
    open: VecDeque<(usize, Slot)>,
    running: FuturesUnordered<BoxFuture<'static, (usize, Finished)>>,
    /// Why nothing more is begun.
    halted: Option<Error>,
    /// When tools that were told to stop are dropped.
    grace: Option<Instant>,
    stopped: Option<RunFailure>,
    tool_failure: Option<Error>,
    signal: Option<Signal>,
    direct: Option<String>,
    unknown: Option<String>,
}

impl<'l, 'c> Dispatch<'l, 'c> {
    /// Takes the calls of a response, as many as are allowed of which may run.
    pub(super) fn new(run: &'l mut ToolLoop<'c>, calls: Vec<Prepared>, allowance: &Allowance) -> Self {
        let toolbox = &run.conversation.toolbox;
        let open = calls
            .into_iter()
            .enumerate()
            .map(|(place, prepared)| {
                let prepared = match toolbox.delivery() {
                    Delivery::Gateway => through(prepared),
                    _ => prepared,
                };
                let state = match (allowance.refuse(place), toolbox.look_up(&prepared.wanted)) {
                    (Some(error), _) => State::Refused(error),
                    (None, ToolLookup::Found(tool)) if run.gate(&tool) == CallGate::Ungated => admit(tool, &prepared),
                    (None, _) => State::Unresolved,
                };
                (place, Slot { prepared, state })
            })
            .collect();
        Self {
            run,
            open,
            running: FuturesUnordered::new(),
            halted: None,
            grace: None,
            stopped: None,
            tool_failure: None,
            signal: None,
            direct: None,
            unknown: None,
        }
    }

    /// Runs what may run and answers every call.
    pub(super) async fn run(mut self) -> Verdict {
        while let Some((place, slot)) = self.open.pop_front() {
            let slot = self.resolve(slot);
            match slot.state {
                State::Done(tool, finished) => self.answer(slot.prepared, tool, finished),
                State::Refused(error) => self.run.refuse(&slot.prepared.call, &error),
                State::Guided(name, guidance) => self.run.guide(&slot.prepared.call, name, guidance),
                _ => {
                    self.open.push_front((place, slot));
                    self.start();
                    self.wait().await;
                }
            }
        }
        self.verdict()
    }

    /// Looks up again the name of a call that had no tool or a lock, now that the calls before it are answered.
    fn resolve(&mut self, mut slot: Slot) -> Slot {
        if !matches!(slot.state, State::Unresolved) {
            return slot;
        }
        let toolbox = &self.run.conversation.toolbox;
        let wanted = &slot.prepared.wanted;
        slot.state = match toolbox.look_up(wanted) {
            ToolLookup::Found(tool) => match self.run.gate(&tool) {
                CallGate::Locked(guidance) => State::Guided(tool.name, guidance),
                _ => admit(tool, &slot.prepared),
            },
            ToolLookup::Removed(_) => State::Refused(removed_tool(wanted)),
            ToolLookup::Unknown(nearest) => match path_to(wanted, toolbox.callable()) {
                Some(path) => State::Refused(folded_tool(wanted, &path)),
                None => {
                    self.unknown = Some(wanted.clone());
                    State::Refused(unknown_tool(wanted, &nearest, toolbox.callable()))
                }
            },
        };
        slot
    }

    fn answer(&mut self, prepared: Prepared, tool: NamedTool, finished: Finished) {
        let Consequence {
            direct,
            signal,
            failure,
        } = self.run.answer(prepared, tool, finished);
        self.direct = self.direct.take().or(direct);
        self.signal = self.signal.take().or(signal);
        self.tool_failure = self.tool_failure.take().or(failure);
    }

    /// Starts every call that need not wait for another. What belongs to a serial group waits for the calls before it that
    /// have no tool yet, since those may turn out to be of the group.
    fn start(&mut self) {
        let mut busy = HashSet::new();
        let mut any_unresolved = false;
        for (place, slot) in &mut self.open {
            match &slot.state {
                State::Unresolved => any_unresolved = true,
                State::Running(tool) => busy.extend(tool.tool.serial_group()),
                State::Done(..) | State::Refused(_) | State::Guided(..) => {}
                State::Waiting(tool) => {
                    let group = tool.tool.serial_group();
                    let must_wait = group.is_some_and(|group| any_unresolved || busy.contains(&group));
                    busy.extend(group);
                    if let Some(reason) = &self.halted {
                        slot.state = State::Refused(reason.clone());
                    } else if !must_wait {
                        let tool = tool.clone();
                        slot.state = State::Running(tool.clone());
                        self.running.push(begin(self.run, *place, &slot.prepared, tool));
                    }
                }
            }
        }
    }

    /// Waits for one call to end, for the wish to stop, or for the end of the patience with those that do not stop.
    async fn wait(&mut self) {
        if self.running.is_empty() {
            return;
        }
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
                self.halt(ErrorKind::Cancelled, "the run was stopped");
                self.grace = Some(Instant::now() + STOP_GRACE);
                self.stopped = Some(failure);
            }
            Some((place, finished)) = self.running.next() => self.finish(place, finished),
            () = patience => self.abandon(),
        }
    }

    fn halt(&mut self, kind: ErrorKind, reason: &str) {
        self.halted.get_or_insert_with(|| not_run(kind, reason));
    }

    fn finish(&mut self, place: usize, finished: Finished) {
        if finished.outcome.is_operators() {
            self.halt(ErrorKind::ToolUnavailable, "another tool of this response failed");
        } else if finished.outcome.is_signal() {
            self.halt(
                ErrorKind::ToolUnavailable,
                "another tool of this response stopped the run",
            );
        }
        if let Some((_, slot)) = self.open.iter_mut().find(|(open, _)| *open == place) {
            slot.finish(finished);
        }
    }

    fn abandon(&mut self) {
        self.running.clear();
        for (_, slot) in &mut self.open {
            slot.finish(Finished {
                outcome: Outcome::Abandoned,
                wall: STOP_GRACE,
            });
        }
    }

    fn verdict(self) -> Verdict {
        if let Some(failure) = self.stopped {
            return Verdict::Failed(failure);
        }
        if let Some(error) = self.tool_failure {
            return Verdict::Failed(RunFailure::Tool(error));
        }
        if let Some(signal) = self.signal {
            return Verdict::Signalled(signal);
        }
        if let Some(answer) = self.direct {
            return Verdict::Direct(answer);
        }
        let too_many = self.run.note_unknown(self.unknown.as_deref());
        too_many.map_or(Verdict::Continue, Verdict::Failed)
    }
}

/// Begins a call. The future holds all it needs and belongs to the run.
fn begin(
    run: &mut ToolLoop<'_>,
    place: usize,
    prepared: &Prepared,
    tool: NamedTool,
) -> BoxFuture<'static, (usize, Finished)> {
    tracing::debug!(tool = %tool.name, "a tool begins");
    let events = run.conversation.toolbox.called(&tool.name);
    run.emit_all(&events);
    run.emit(&Event::ToolStarted {
        id: prepared.call.id.clone(),
        name: tool.name.clone(),
        tool: tool.definition.id.clone(),
    });
    let arguments = prepared.arguments.clone().unwrap_or_default();
    let mut context = run.conversation.late.offer(&prepared.call.id, &run.context);
    if tool.tool.calls_tools() {
        context = context.with_tools(Arc::new(run.reachable(&prepared.call.id, &tool.definition.id)));
    }
    Box::pin(async move { (place, call(tool, arguments, context).await) })
}
