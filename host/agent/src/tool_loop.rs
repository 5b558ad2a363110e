//! One run: the model is asked, its calls are run, their results bring tools, and again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::conversation::Conversation;
use super::dispatch::{Dispatch, Verdict};
use super::event::Event;
use super::failure::{RunError, RunFailure};
use super::history::interrupted;
use super::inference::Reply;
use super::outcome::{RunOutcome, RunUsage, StopReason};
use super::policy::{IterationPolicy, LoopLimits, UnknownToolPolicy};
use super::prepare::{Prepared, not_run, shown};
use super::process::{Account, Budget};
use super::reachable::Reachable;
use super::slot::Allowance;
use super::stop::Stop;
use super::tally::Tally;
use crate::injection::{CallGate, ConversationView, InjectionStrategy, SEARCH_TOOLS, TurnContext};
use crate::model::{FinishReason, ToolChoice};
use toolwit_core::{Error, ErrorKind};
use toolwit_core::{LOOP_ID, Message, NamedTool, Signal, ToolContext, ToolId, ToolName};

/// A run in progress. However it ends, dropped half-way or not, the history it leaves is valid to continue.
pub(super) struct ToolLoop<'c> {
    pub(super) conversation: &'c mut Conversation,
    pub(super) context: ToolContext,
    pub(super) stop: Stop,
    /// What this run uses, nested agents included.
    pub(super) account: Arc<Account>,
    pub(super) tally: Tally,
    started: Instant,
    finished: bool,
}

/// How a run ends well.
struct Ending {
    answer: Option<String>,
    stop: StopReason,
    signal: Option<Signal>,
}

impl Ending {
    fn new(answer: Option<String>, stop: StopReason) -> Self {
        Self {
            answer,
            stop,
            signal: None,
        }
    }
}

impl<'c> ToolLoop<'c> {
    pub(super) fn new(conversation: &'c mut Conversation, context: &ToolContext) -> Self {
        let limits = &conversation.limits;
        let process = conversation.process.clone();
        let budget = Budget {
            tokens_max: limits.tokens_max,
            ..Budget::none()
        };
        let account = Arc::new(Account::open(budget, Some(process.account().clone())));
        let stop = Stop::new(
            conversation.context.cancel(),
            context.cancel(),
            wall_max(limits, process.account()),
        );
        let context = context
            .clone()
            .with(LOOP_ID, super::loop_id::fresh())
            .with_extension(process)
            .with_extension(account.clone())
            .with_cancel(stop.token().clone());
        Self {
            conversation,
            context,
            stop,
            account,
            tally: Tally::default(),
            started: Instant::now(),
            finished: false,
        }
    }

    /// Answers one message of the user; without one, what came in the background meanwhile.
    pub(super) async fn run(mut self, prompt: Option<&str>) -> Result<RunOutcome, RunError> {
        if let Some(prompt) = prompt {
            self.conversation.history.say(Message::user(prompt));
        }
        self.conversation.process.run_begins(prompt);
        self.conversation.turns += 1;
        let event = Event::TurnStarted {
            loop_id: self.context.text(LOOP_ID).unwrap_or_default().to_owned(),
            turn: self.conversation.turns,
            tools: self.conversation.toolbox.start_turn(),
        };
        self.emit(&event);
        if prompt.is_some() {
            self.begin_turn();
        }
        match self.drive().await {
            Ok(ending) => Ok(self.finish(ending)),
            Err(failure) => {
                let is_cut = matches!(failure, RunFailure::Length);
                let answer = self.tally.text.take().filter(|_| is_cut);
                let outcome = self.finish(Ending::new(answer, failure.stop()));
                Err(RunError::new(failure, outcome))
            }
        }
    }

    /// Lets the strategies bring in what the user's message calls for, before the model is asked.
    fn begin_turn(&mut self) {
        let injection = self.conversation.strategy.begin_turn(&TurnContext::at(self.view()));
        if let (false, Some(trigger)) = (injection.is_none(), ToolName::parse(SEARCH_TOOLS)) {
            let toolbox = &mut self.conversation.toolbox;
            let events = toolbox.begin(injection, &trigger);
            // The model has not been asked yet: what it is shown may still become what there is.
            toolbox.declare_anew();
            if let Some(described) = self.conversation.toolbox.described(&events) {
                self.conversation.history.add_to_prompt(&described);
            }
            self.emit_all(&events);
        }
    }

    /// Shows strategies the conversation as it is now.
    pub(super) fn view(&self) -> ConversationView<'_> {
        let conversation = &self.conversation;
        let view = conversation.toolbox.view(conversation.history.messages());
        view.with_context(&self.context)
            .at(conversation.turns, self.tally.iterations)
    }

    /// Asks the strategies whether a tool may be called now. One that panics locks it.
    pub(super) fn gate(&self, tool: &NamedTool) -> CallGate {
        let strategy = &self.conversation.strategy;
        let gate = catch_unwind(AssertUnwindSafe(|| strategy.gate(tool, &self.view())));
        gate.unwrap_or_else(|_| {
            tracing::error!(tool = %tool.name, "an injection strategy panicked; the tool is locked");
            CallGate::Locked(format!(
                "`{}` cannot be called: what decides about it is broken",
                tool.name
            ))
        })
    }

    /// What another tool may call: all but the tools about which a strategy has a say, which are for the model alone, since
    /// what they change is seen in its calls only.
    pub(super) fn reachable(&self, call: &str, caller: &ToolId) -> Reachable {
        let mut tools = self.conversation.toolbox.callable().clone();
        let claimed: Vec<_> = tools
            .iter()
            .filter(|tool| self.gate(tool) != CallGate::Ungated)
            .map(|tool| tool.definition.id.clone())
            .collect();
        claimed.iter().for_each(|id| drop(tools.remove(id)));
        let conversation = &self.conversation;
        let (strategy, observers) = (conversation.strategy.clone(), conversation.observers.clone());
        Reachable::new(call, caller.clone(), tools, strategy, observers)
    }

    pub(super) fn emit(&self, event: &Event) {
        self.conversation.observers.emit(event);
    }

    /// Tells, counts and logs what happened to the tools.
    pub(super) fn emit_all(&mut self, events: &[Event]) {
        for event in events {
            self.tally.note(event);
            match event {
                Event::ToolsInjected { trigger, names, .. } => {
                    tracing::info!(count = names.len(), %trigger, ?names, "tools injected");
                }
                Event::ToolsRemoved { trigger, names } => {
                    tracing::info!(count = names.len(), %trigger, ?names, "tools removed");
                }
                Event::ProviderInvalid { kind, reason } => {
                    tracing::warn!(kind, reason, "a returned object cannot become tools");
                }
                Event::ToolsMany { count } => tracing::warn!(count, "many tools are declared"),
                _ => {}
            }
            self.emit(event);
        }
    }

    async fn drive(&mut self) -> Result<Ending, RunFailure> {
        while self.tally.iterations < self.conversation.limits.iterations_max {
            if let Some(signal) = self.tell_late_results() {
                return Ok(self.end_by(signal));
            }
            let reply = self.ask(None).await?;
            if reply.calls.is_empty() {
                return conclude(reply);
            }
            match self.call_tools(reply.calls).await? {
                Verdict::Continue => {}
                Verdict::Direct(answer) => {
                    self.speak(&answer);
                    return Ok(Ending::new(Some(answer), StopReason::ReturnDirect));
                }
                Verdict::Signalled(signal) => return Ok(self.end_by(signal)),
                Verdict::Failed(failure) => return Err(failure),
            }
        }
        self.out_of_iterations().await
    }

    /// Ends the run as a tool asks. What the user is to read is the answer.
    fn end_by(&mut self, signal: Signal) -> Ending {
        let answer = match &signal {
            Signal::AskUser { question: text } | Signal::Terminate { reason: text } => Some(text.clone()),
            _ => None,
        };
        if let Some(answer) = answer.as_deref().filter(|answer| !answer.is_empty()) {
            self.speak(answer);
        }
        Ending {
            answer,
            stop: StopReason::from(&signal),
            signal: Some(signal),
        }
    }

    /// Puts into the history what is said in the model's place.
    fn speak(&mut self, text: &str) {
        self.conversation.history.say(Message::assistant(text, Vec::new()));
    }

    /// Runs the calls of a response.
    async fn call_tools(&mut self, calls: Vec<Prepared>) -> Result<Verdict, RunFailure> {
        if let Some(exhausted) = self.account.exhausted() {
            self.refuse_open_calls("what the run may use is used up");
            return Err(exhausted);
        }
        let limits = &self.conversation.limits;
        let calls_max = limits.calls_max;
        let wanted = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let left = calls_max.saturating_sub(self.tally.calls_wanted);
        let allowed = self.account.take_calls(wanted.min(left));
        let allowance = Allowance {
            per_response: limits.calls_per_response_max as usize,
            left: allowed as usize,
        };
        self.tally.calls_wanted = self.tally.calls_wanted.saturating_add(wanted);
        match Dispatch::new(self, calls, &allowance).run().await {
            Verdict::Continue if wanted > left => Err(RunFailure::CallLimit { max: calls_max }),
            Verdict::Continue if wanted > allowed => {
                let exhausted = self.account.calls_exhausted();
                Err(exhausted.unwrap_or(RunFailure::CallLimit { max: calls_max }))
            }
            verdict => Ok(verdict),
        }
    }

    /// Counts responses in a row that held an unknown name, and says when they are too many.
    pub(super) fn note_unknown(&mut self, unknown: Option<&str>) -> Option<RunFailure> {
        let Some(requested) = unknown else {
            self.tally.unknown_streak = 0;
            return None;
        };
        self.tally.unknown_streak += 1;
        let times = self.tally.unknown_streak;
        match self.conversation.limits.unknown_tools {
            UnknownToolPolicy::StopAfter(max) if times >= max => Some(RunFailure::UnknownTools {
                requested: shown(requested),
                times,
                available: self.conversation.toolbox.declared_names(),
            }),
            _ => None,
        }
    }

    async fn out_of_iterations(&mut self) -> Result<Ending, RunFailure> {
        let max = self.conversation.limits.iterations_max;
        let ending = |answer| Ending::new(answer, StopReason::IterationLimit);
        match self.conversation.limits.on_iterations_max {
            IterationPolicy::Error => Err(RunFailure::IterationLimit { max }),
            IterationPolicy::Partial => Ok(ending(self.tally.text.take())),
            IterationPolicy::FinalAnswer => {
                let reply = self.ask(Some(ToolChoice::None)).await?;
                self.refuse_open_calls("this was the last turn, which has no tools");
                match conclude(reply)?.answer.filter(|answer| !answer.is_empty()) {
                    Some(answer) => Ok(ending(Some(answer))),
                    None => Err(RunFailure::IterationLimit { max }),
                }
            }
        }
    }

    fn refuse_open_calls(&mut self, reason: &str) {
        self.conversation.history.close(&not_run(ErrorKind::LoopLimit, reason));
    }

    fn finish(&mut self, ending: Ending) -> RunOutcome {
        self.close(&interrupted(), ending.stop);
        let usage = self.usage();
        let tally = std::mem::take(&mut self.tally);
        RunOutcome {
            answer: ending.answer,
            stop: ending.stop,
            signal: ending.signal,
            iterations: tally.iterations,
            tool_calls: tally.calls,
            artifacts: tally.artifacts,
            injected: tally.injected,
            removed: tally.removed,
            usage,
            history: self.conversation.history.messages().to_vec(),
        }
    }

    fn usage(&self) -> RunUsage {
        let used = self.account.used();
        RunUsage {
            tokens: used.tokens,
            cost_usd: used.cost,
            ..self.tally.usage
        }
    }

    fn close(&mut self, open_calls: &Error, stop: StopReason) {
        self.finished = true;
        self.conversation.history.close(open_calls);
        self.conversation.process.run_ended(stop);
        self.emit(&Event::Finished {
            stop,
            iterations: self.tally.iterations,
            tool_calls: self.tally.calls.len(),
            usage: self.usage(),
            wall_ms: millis(self.started.elapsed()),
        });
    }
}

/// A run whose future is dropped was cancelled.
impl Drop for ToolLoop<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.close(&interrupted(), StopReason::Cancelled);
        }
    }
}

/// Takes what the model says without calling a tool.
fn conclude(reply: Reply) -> Result<Ending, RunFailure> {
    match reply.finish {
        FinishReason::Length => Err(RunFailure::Length),
        FinishReason::ContentFilter => Err(RunFailure::Withheld),
        _ => Ok(Ending::new(Some(reply.content), StopReason::Answered)),
    }
}

/// How long a run may take: its own limit, or what is left of its process's.
fn wall_max(limits: &LoopLimits, process: &Account) -> Duration {
    let own = Duration::from_millis(limits.wall_ms_max);
    process.wall_left().map_or(own, |left| left.min(own))
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
