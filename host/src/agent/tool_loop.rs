//! One run: the model is asked, its calls are run, their results bring tools, and again.

use std::time::Duration;

use tokio::time::Instant;

use super::conversation::Conversation;
use super::dispatch::{Allowance, Dispatch, Verdict};
use super::event::Event;
use super::failure::{RunError, RunFailure};
use super::history::interrupted;
use super::outcome::{CallRecord, RunOutcome, RunUsage, StopReason};
use super::policy::{IterationPolicy, UnknownToolPolicy};
use super::prepare::{not_run, prepare, shown};
use super::stop::Stop;
use crate::error::ErrorKind;
use crate::model::{ChatRequest, ChatResponse, FinishReason, ModelError, ToolChoice};
use crate::tool::{Message, ToolContext, ToolName};

/// The key under which tools find the id of the run that calls them.
pub const LOOP_ID: &str = "loop_id";

/// A run in progress. However it ends, dropped half-way or not, the history it leaves is valid to continue.
pub(super) struct ToolLoop<'c> {
    pub(super) conversation: &'c mut Conversation,
    pub(super) context: ToolContext,
    pub(super) stop: Stop,
    pub(super) tally: Tally,
    started: Instant,
    finished: bool,
}

/// What a run has used and brought so far.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) iterations: u32,
    pub(super) calls: Vec<CallRecord>,
    calls_wanted: u32,
    injected: Vec<ToolName>,
    removed: Vec<ToolName>,
    usage: RunUsage,
    unknown_streak: u32,
    /// What the model said last.
    text: Option<String>,
}

/// How a run ends well.
struct Ending {
    answer: Option<String>,
    stop: StopReason,
}

impl<'c> ToolLoop<'c> {
    pub(super) fn new(conversation: &'c mut Conversation, context: &ToolContext) -> Self {
        let stop = Stop::new(
            context.cancel(),
            Duration::from_millis(conversation.limits.wall_ms_max),
        );
        let loop_id = super::loop_id::fresh();
        Self {
            context: context.clone().with(LOOP_ID, loop_id).with_cancel(stop.token().clone()),
            conversation,
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
        match self.drive().await {
            Ok(ending) => Ok(self.finish(ending.answer, ending.stop)),
            Err(failure) => {
                let cut = matches!(failure, RunFailure::Length);
                let answer = self.tally.text.take().filter(|_| cut);
                let outcome = self.finish(answer, failure.stop());
                Err(RunError::new(failure, outcome))
            }
        }
    }

    async fn drive(&mut self) -> Result<Ending, RunFailure> {
        let iterations_max = self.conversation.limits.iterations_max;
        loop {
            if self.tally.iterations >= iterations_max {
                return self.out_of_iterations().await;
            }
            let response = self.ask(None).await?;
            if response.tool_calls.is_empty() {
                return self.conclude(response);
            }
            match self.call_tools(response).await? {
                Verdict::Continue => {}
                Verdict::Direct(answer) => {
                    self.conversation.history.say(Message::assistant(answer.clone(), Vec::new()));
                    return Ok(Ending {
                        answer: Some(answer),
                        stop: StopReason::ReturnDirect,
                    });
                }
                Verdict::Failed(failure) => return Err(failure),
            }
        }
    }

    /// Asks the model once.
    async fn ask(&mut self, choice: Option<ToolChoice>) -> Result<ChatResponse, RunFailure> {
        self.tally.iterations += 1;
        let toolbox = &self.conversation.toolbox;
        self.emit(&Event::IterationStarted {
            iteration: self.tally.iterations,
            tools: toolbox.declared().len(),
            providers: toolbox.entities().len(),
        });
        let mut options = self.conversation.options.clone();
        options.tool_choice = choice.unwrap_or(options.tool_choice);
        let messages = self.conversation.history.messages();
        let request = ChatRequest::new(messages, toolbox.declared(), &options, self.stop.token());
        let asked = Instant::now();
        let answer = tokio::select! {
            biased;
            failure = self.stop.requested() => return Err(failure),
            answer = self.conversation.model.chat(request) => answer,
        };
        let mut response = answer.map_err(|error| match error {
            ModelError::Cancelled => RunFailure::Cancelled,
            error => RunFailure::Model(error),
        })?;
        self.tally.usage.tokens += response.usage;
        if !response.content.is_empty() {
            self.tally.text = Some(response.content.clone());
        }
        self.remember(&mut response, asked.elapsed());
        Ok(response)
    }

    /// Puts a response into the history, its calls made ready; what is to be run is left in the response.
    fn remember(&mut self, response: &mut ChatResponse, wall: Duration) {
        let calls = std::mem::take(&mut response.tool_calls);
        let prepared = prepare(calls, &response.finish, &mut self.conversation.history);
        let calls: Vec<_> = prepared.iter().map(|prepared| prepared.call.clone()).collect();
        self.conversation.history.respond(response.content.clone(), calls.clone());
        self.emit(&Event::ModelAnswered {
            iteration: self.tally.iterations,
            wall_ms: millis(wall),
            finish: response.finish.clone(),
            usage: response.usage,
            content: response.content.clone(),
            tool_calls: calls,
        });
        todo!()
    }
}
