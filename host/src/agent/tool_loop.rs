//! One run: the model is asked, its calls are run, their results bring tools, and again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tokio::time::Instant;

use super::conversation::Conversation;
use super::dispatch::{Dispatch, Verdict};
use super::event::Event;
use super::failure::{RunError, RunFailure};
use super::history::interrupted;
use super::outcome::{RunOutcome, StopReason};
use super::policy::{IterationPolicy, UnknownToolPolicy};
use super::prepare::{Prepared, not_run, prepare, shown};
use super::slot::Allowance;
use super::stop::Stop;
use super::tally::Tally;
use crate::error::{Error, ErrorKind};
use crate::injection::{Gate, InjectionStrategy, SEARCH_TOOLS, Scene, TurnContext};
use crate::model::{ChatRequest, ChatResponse, FinishReason, ModelError, ToolChoice};
use crate::tool::{LOOP_ID, Message, NamedTool, ToolContext, ToolName};

/// A run in progress. However it ends, dropped half-way or not, the history it leaves is valid to continue.
pub(super) struct ToolLoop<'c> {
    pub(super) conversation: &'c mut Conversation,
    pub(super) context: ToolContext,
    pub(super) stop: Stop,
    pub(super) tally: Tally,
    started: Instant,
    finished: bool,
}

/// What the model said, its calls made ready.
struct Reply {
    content: String,
    finish: FinishReason,
    calls: Vec<Prepared>,
}

/// How a run ends well.
struct Ending {
    answer: Option<String>,
    stop: StopReason,
}

impl<'c> ToolLoop<'c> {
    pub(super) fn new(conversation: &'c mut Conversation, context: &ToolContext) -> Self {
        let wall_max = Duration::from_millis(conversation.limits.wall_ms_max);
        let stop = Stop::new(conversation.context.cancel(), context.cancel(), wall_max);
        let context = context
            .clone()
            .with(LOOP_ID, super::loop_id::fresh())
            .with_cancel(stop.token().clone());
        Self {
            conversation,
            context,
            stop,
            tally: Tally::default(),
            started: Instant::now(),
            finished: false,
        }
    }

    /// Answers one message of the user.
    pub(super) async fn run(mut self, prompt: &str) -> Result<RunOutcome, RunError> {
        self.conversation.history.say(Message::user(prompt));
        self.conversation.turns += 1;
        let event = Event::TurnStarted {
            loop_id: self.context.text(LOOP_ID).unwrap_or_default().to_owned(),
            turn: self.conversation.turns,
            tools: self.conversation.toolbox.start_turn(),
        };
        self.emit(&event);
        self.begin_turn();
        match self.drive().await {
            Ok(ending) => Ok(self.finish(ending.answer, ending.stop)),
            Err(failure) => {
                let is_cut = matches!(failure, RunFailure::Length);
                let answer = self.tally.text.take().filter(|_| is_cut);
                let outcome = self.finish(answer, failure.stop());
                Err(RunError::new(failure, outcome))
            }
        }
    }

    /// Lets the strategies bring in what the user's message calls for, before the model is asked.
    fn begin_turn(&mut self) {
        let injection = self.conversation.strategy.begin_turn(&TurnContext::at(self.scene()));
        if let (false, Some(trigger)) = (injection.is_none(), ToolName::parse(SEARCH_TOOLS)) {
            let events = self.conversation.toolbox.begin(injection, &trigger);
            if let Some(described) = self.conversation.toolbox.described(&events) {
                self.conversation.history.add_to_prompt(&described);
            }
            self.emit_all(&events);
        }
    }

    /// Shows strategies the conversation as it is now.
    pub(super) fn scene(&self) -> Scene<'_> {
        let conversation = &self.conversation;
        let scene = conversation.toolbox.scene(conversation.history.messages());
        scene
            .with_context(&self.context)
            .at(conversation.turns, self.tally.iterations)
    }

    /// Asks the strategies whether a tool may be called now. One that panics locks it.
    pub(super) fn gate(&self, tool: &NamedTool) -> Gate {
        let strategy = &self.conversation.strategy;
        let gate = catch_unwind(AssertUnwindSafe(|| strategy.gate(tool, &self.scene())));
        gate.unwrap_or_else(|_| {
            tracing::error!(tool = %tool.name, "an injection strategy panicked; the tool is locked");
            Gate::Locked(format!(
                "`{}` cannot be called: what decides about it is broken",
                tool.name
            ))
        })
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
            let reply = self.ask(None).await?;
            if reply.calls.is_empty() {
                return conclude(reply);
            }
            if let Some(answer) = self.call_tools(reply.calls).await? {
                let spoken = Message::assistant(answer.clone(), Vec::new());
                self.conversation.history.say(spoken);
                return Ok(Ending {
                    answer: Some(answer),
                    stop: StopReason::ReturnDirect,
                });
            }
        }
        self.out_of_iterations().await
    }

    /// Asks the model once, and puts what it says into the history.
    async fn ask(&mut self, choice: Option<ToolChoice>) -> Result<Reply, RunFailure> {
        self.tally.iterations += 1;
        let toolbox = &self.conversation.toolbox;
        self.emit(&Event::IterationStarted {
            iteration: self.tally.iterations,
            tools: toolbox.declared().len(),
            providers: toolbox.entities().len(),
        });
        let mut options = self.conversation.options.clone();
        options.tool_choice = choice.unwrap_or_else(|| self.tool_choice());
        let messages = self.conversation.history.messages();
        let request = ChatRequest::new(messages, toolbox.declared(), &options, self.stop.token());
        let asked = Instant::now();
        let answer = tokio::select! {
            biased;
            failure = self.stop.requested() => return Err(failure),
            answer = self.conversation.model.chat(request) => answer,
        };
        match answer {
            Ok(response) => Ok(self.remember(response, asked.elapsed())),
            Err(ModelError::Cancelled) => Err(RunFailure::Cancelled),
            Err(error) => Err(RunFailure::Model(error)),
        }
    }

    /// A model that must call a tool must do so once: else it could never answer.
    fn tool_choice(&self) -> ToolChoice {
        match self.conversation.options.tool_choice {
            ToolChoice::Required if self.tally.iterations > 1 => ToolChoice::Auto,
            choice => choice,
        }
    }

    fn remember(&mut self, response: ChatResponse, wall: Duration) -> Reply {
        let history = &mut self.conversation.history;
        let calls = prepare(response.tool_calls, &response.finish, history);
        let tool_calls: Vec<_> = calls.iter().map(|prepared| prepared.call.clone()).collect();
        history.respond(response.content.clone(), tool_calls.clone());
        self.tally.usage.tokens += response.usage;
        if !response.content.is_empty() {
            self.tally.text = Some(response.content.clone());
        }
        self.emit(&Event::ModelAnswered {
            iteration: self.tally.iterations,
            wall_ms: millis(wall),
            finish: response.finish.clone(),
            usage: response.usage,
            content: response.content.clone(),
            tool_calls,
        });
        for prepared in calls.iter().filter(|prepared| prepared.repaired) {
            self.emit(&Event::ArgumentsRepaired {
                id: prepared.call.id.clone(),
                name: prepared.call.name.clone(),
            });
        }
        Reply {
            content: response.content,
            finish: response.finish,
            calls,
        }
    }

    /// Runs the calls of a response. Returns the answer when a result is the answer.
    async fn call_tools(&mut self, calls: Vec<Prepared>) -> Result<Option<String>, RunFailure> {
        let limits = &self.conversation.limits;
        let used = self
            .tally
            .usage
            .tokens
            .input_tokens
            .saturating_add(self.tally.usage.tokens.output_tokens);
        if let Some(max) = limits.tokens_max.filter(|max| used >= *max) {
            self.refuse_open_calls("the run has no tokens left");
            return Err(RunFailure::TokenLimit { max, used });
        }
        let calls_max = limits.calls_max;
        let wanted = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let left = calls_max.saturating_sub(self.tally.calls_wanted);
        let allowance = Allowance {
            per_response: limits.calls_per_response_max as usize,
            left: left as usize,
        };
        self.tally.calls_wanted = self.tally.calls_wanted.saturating_add(wanted);
        match Dispatch::new(self, calls, &allowance).run().await {
            Verdict::Continue if wanted > left => Err(RunFailure::CallLimit { max: calls_max }),
            Verdict::Continue => Ok(None),
            Verdict::Direct(answer) => Ok(Some(answer)),
            Verdict::Failed(failure) => Err(failure),
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
        let ending = |answer| Ending {
            answer,
            stop: StopReason::IterationLimit,
        };
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

    fn finish(&mut self, answer: Option<String>, stop: StopReason) -> RunOutcome {
        self.close(&interrupted(), stop);
        let tally = std::mem::take(&mut self.tally);
        RunOutcome {
            answer,
            stop,
            iterations: tally.iterations,
            tool_calls: tally.calls,
            injected: tally.injected,
            removed: tally.removed,
            usage: tally.usage,
            history: self.conversation.history.messages().to_vec(),
        }
    }

    fn close(&mut self, open_calls: &Error, stop: StopReason) {
        self.finished = true;
        self.conversation.history.close(open_calls);
        self.emit(&Event::Finished {
            stop,
            iterations: self.tally.iterations,
            tool_calls: self.tally.calls.len(),
            usage: self.tally.usage,
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
        _ => Ok(Ending {
            answer: Some(reply.content),
            stop: StopReason::Answered,
        }),
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
