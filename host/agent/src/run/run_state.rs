//! The state that the stages of a run share.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::approval_guard::with_approval_guard;
use super::refusal::not_run;
use super::stop::StopSignal;
use super::tally::RunTally;
use crate::event::Event;
use crate::injection::{CallGate, ConversationView, InjectionStrategy};
use crate::journal::interrupted_answer;
use crate::limits::LoopLimits;
use crate::outcome::RunUsage;
use crate::process::{Account, Budget, new_unique_id};
use crate::state::{ConversationState, error_text};
use toolwit_core::{Caller, ErrorKind, LOOP_ID, NamedTool, ToolContext, ToolName, WallClock};

/// A run in progress, with the conversation that it borrows.
pub(super) struct RunState<'c> {
    pub(super) conversation: &'c mut ConversationState,
    /// The context that the tools of this run receive.
    pub(super) context: ToolContext,
    pub(super) stop: StopSignal,
    /// The account of the tokens, cost and calls of this run, including its nested agents.
    pub(super) account: Arc<Account>,
    pub(super) tally: RunTally,
    /// The JSON Schema of the answer. It takes precedence over the schema in the options of the conversation.
    pub(super) answer_schema: Option<Value>,
    /// Whether tools may deliver results after their call was answered.
    pub(super) receives_late_results: bool,
}

/// The fields of a [`RunState`] that do not borrow the conversation. A [`SingleCall`](super::single_call::SingleCall)
/// keeps them while other calls use the conversation.
pub(super) struct DetachedRun {
    context: ToolContext,
    pub(super) stop: StopSignal,
    account: Arc<Account>,
}

impl<'c> RunState<'c> {
    /// Begins a run: opens its account, starts its clock, and adds both to the context of its tools.
    pub(super) fn new(conversation: &'c mut ConversationState, context: &ToolContext) -> Self {
        let limits = &conversation.limits;
        let process = conversation.process.clone();
        let budget = Budget {
            tokens_max: limits.tokens_max,
            ..Budget::default()
        };
        let account = Arc::new(Account::open(budget, Some(process.account().clone())));
        let wall_max = remaining_wall_max(limits, process.account());
        // A wait for an approval stops the clock of the run and these outer clocks.
        let outer_clock = WallClock::of(context).into_iter();
        let clock = WallClock::start(outer_clock.chain([process.account().clock().clone()]));
        let stop = StopSignal::new(
            conversation.context.cancel_token(),
            context.cancel_token(),
            clock.clone(),
            wall_max,
        );
        // The calls of a conversation with a journal of its own are recorded there.
        let context = match &conversation.journal {
            Some(journal) => context.clone().with_extension(journal.clone()),
            None => context.clone(),
        };
        let context = with_approval_guard(context, conversation.approvals.as_ref(), &conversation.observers)
            .with(LOOP_ID, new_unique_id())
            .with_extension(process)
            .with_extension(account.clone())
            .with_wall_clock(clock)
            .with_cancel_token(stop.token().clone());
        Self {
            conversation,
            context,
            stop,
            account,
            tally: RunTally::default(),
            answer_schema: None,
            receives_late_results: true,
        }
    }

    /// Returns whether the tools of the conversation can change when this run begins its turn: for a user message, and for
    /// another caller than that of the previous turn.
    pub(super) fn changes_tools(&self, prompt: Option<&str>) -> bool {
        prompt.is_some() || self.has_other_caller()
    }

    /// Returns whether the run has another caller than the one for whom the tools of the conversation were made.
    pub(super) fn has_other_caller(&self) -> bool {
        Caller::of(&self.context) != self.conversation.caller
    }

    /// Ends the borrow of the conversation. [`RunState::reattach`] continues the run.
    pub(super) fn detach(self) -> DetachedRun {
        DetachedRun {
            context: self.context,
            stop: self.stop,
            account: self.account,
        }
    }

    /// Continues a detached run, with an empty [tally](RunTally).
    pub(super) fn reattach(conversation: &'c mut ConversationState, run: DetachedRun) -> Self {
        Self {
            conversation,
            context: run.context,
            stop: run.stop,
            account: run.account,
            tally: RunTally::default(),
            // A single call delivers no late results.
            receives_late_results: false,
            answer_schema: None,
        }
    }

    /// Emits an event without recording it in the tally of the run.
    pub(super) fn emit(&self, event: &Event) {
        self.conversation.observers.emit(event);
    }

    /// Records events in the tally of the run, logs the events that change the tools, and emits all events.
    pub(super) fn emit_and_record(&mut self, events: &[Event]) {
        for event in events {
            self.tally.record(event);
            match event {
                Event::ToolsInjected { trigger, names, .. } => {
                    tracing::info!(count = names.len(), %trigger, names = joined(names), "tools injected");
                }
                Event::ToolsRemoved { trigger, names } => {
                    tracing::info!(count = names.len(), %trigger, names = joined(names), "tools removed");
                }
                Event::ProviderInvalid { kind, reason } => {
                    tracing::warn!(kind, reason, "the methods of a returned object cannot become tools");
                }
                Event::ManyToolsDeclared { count } => tracing::warn!(count, "many tools are declared"),
                _ => {}
            }
            self.emit(event);
        }
    }

    /// Returns the view of the conversation that strategies receive.
    pub(super) fn view(&self) -> ConversationView<'_> {
        let conversation = &self.conversation;
        let view = conversation.toolbox.view(conversation.history.messages());
        view.with_context(&self.context)
            .with_position(conversation.turns, self.tally.iterations)
    }

    /// Returns whether the strategies allow a call of this tool now. If a strategy panics, the tool counts as locked.
    pub(super) fn gate(&self, tool: &NamedTool) -> CallGate {
        let strategy = &self.conversation.strategy;
        let gate = catch_unwind(AssertUnwindSafe(|| strategy.gate(tool, &self.view())));
        gate.unwrap_or_else(|_| {
            tracing::error!(tool = %tool.name, "an injection strategy panicked; the tool is locked");
            CallGate::Locked(format!(
                "`{}` cannot be called: the strategy that guards it failed",
                tool.name
            ))
        })
    }

    /// Answers the unanswered calls of the last response with an error that has this reason.
    pub(super) fn refuse_open_calls(&mut self, reason: &str) {
        let error = not_run(ErrorKind::LoopLimit, reason);
        if self.conversation.history.answer_open_calls(&error) {
            self.emit(&Event::OpenCallsAnswered {
                content: error_text(&error),
            });
        }
    }

    /// Appends the text that the user has seen of an incomplete response to the history, if there is one.
    pub(super) fn append_interrupted_answer(&mut self) {
        let content = self.tally.take_streamed_text();
        if !content.trim().is_empty() {
            self.conversation.history.append(interrupted_answer(&content));
            self.emit(&Event::AnswerInterrupted { content });
        }
    }

    /// Returns the usage of the run so far.
    pub(super) fn usage(&self) -> RunUsage {
        let used = self.account.usage();
        RunUsage {
            tokens: used.tokens,
            cost_usd: used.cost,
            ..self.tally.usage
        }
    }
}

/// Returns the time that a run may take: its own limit, or the remaining time of the process if that is shorter.
fn remaining_wall_max(limits: &LoopLimits, process: &Account) -> Duration {
    let run_max = Duration::from_millis(limits.wall_ms_max);
    process.wall_left().map_or(run_max, |left| left.min(run_max))
}

/// Formats names for a log.
fn joined(names: &[ToolName]) -> String {
    let names: Vec<_> = names.iter().map(ToolName::as_str).collect();
    names.join(", ")
}
