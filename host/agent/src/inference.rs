//! One inference of a run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::event::Event;
use super::failure::RunFailure;
use super::prepare::{Prepared, prepare};
use super::process::ModelUseKind;
use super::tool_loop::{ToolLoop, millis};
use crate::model::{ChatRequest, ChatResponse, Cost, FinishReason, ModelError, ToolChoice};

/// What the model said, its calls made ready.
pub(super) struct Reply {
    pub(super) content: String,
    pub(super) finish: FinishReason,
    pub(super) calls: Vec<Prepared>,
}

impl ToolLoop<'_> {
    /// Asks the model once, and puts what it says into the history.
    pub(super) async fn ask(&mut self, choice: Option<ToolChoice>) -> Result<Reply, RunFailure> {
        if let Some(exhausted) = self.account.exhausted() {
            return Err(exhausted);
        }
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
        let (output, is_heard) = (self.context.output(), AtomicBool::new(false));
        let hear = |text: &str| {
            is_heard.store(true, Ordering::Relaxed);
            if catch_unwind(AssertUnwindSafe(|| output.words(text))).is_err() {
                tracing::warn!("the output to the user panicked; some words are lost");
            }
        };
        let request =
            ChatRequest::new(messages, toolbox.declared(), &options, self.stop.token()).with_text_listener(&hear);
        let asked = Instant::now();
        let answer = tokio::select! {
            biased;
            failure = self.stop.requested() => return Err(failure),
            answer = self.conversation.model.chat(request) => answer,
        };
        // A model that does not stream is heard all at once.
        if let (Ok(response), false) = (&answer, is_heard.load(Ordering::Relaxed))
            && !response.content.is_empty()
        {
            hear(&response.content);
        }
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
        let model = &self.conversation.model;
        let cost = model.price().map_or(Cost::ZERO, |price| price.cost(&response.usage));
        self.account
            .charge(ModelUseKind::Chat, model.name(), response.usage, cost);
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
}
