//! What lives as long as a conversation.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::builder::ConversationBuilder;
use super::failure::RunError;
use super::history::History;
use super::late::LateResults;
use super::observer::Observers;
use super::outcome::RunOutcome;
use super::page::Pages;
use super::policy::LoopLimits;
use super::process::Process;
use super::tool_loop::ToolLoop;
use super::toolbox::Toolbox;
use super::user_turn::{TypedOutcome, UserTurn};
use crate::injection::{Entities, Injection, StrategyChain};
use crate::model::{ChatModel, ChatOptions};
use toolwit_core::{Blackboard, Message, Tool, ToolContext, ToolId, ToolName, ToolSet};

/// A conversation with a model that has tools: its history, its tools and the live entities behind them.
///
/// Each [`run`](Conversation::run) answers one message of the user. Whatever ends it — an answer, a limit, an error, a
/// cancel, or the future being dropped — the history stays valid and the conversation can go on. Entities live until the
/// conversation is dropped.
pub struct Conversation {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) history: History,
    pub(super) toolbox: Toolbox,
    pub(super) strategy: StrategyChain,
    pub(super) context: ToolContext,
    pub(super) blackboard: Arc<dyn Blackboard>,
    pub(super) process: Arc<Process>,
    pub(super) late: LateResults,
    /// Whether a run's artifacts leave out those that agentic tools handed over.
    pub(super) drops_nested_artifacts: bool,
    pub(super) options: ChatOptions,
    pub(super) limits: LoopLimits,
    pub(super) observers: Observers,
    pub(super) pages: Arc<Pages>,
    /// The tool that reads on in long results; it comes in with the first one.
    pub(super) reader: Arc<dyn Tool>,
    pub(super) turns: u32,
}

impl Conversation {
    /// Starts to describe a conversation.
    #[must_use]
    pub fn builder() -> ConversationBuilder {
        ConversationBuilder::default()
    }

    /// Answers a message of the user.
    ///
    /// # Errors
    /// [`RunError`] when there is no full answer: a limit, a model or a tool that failed, a cancel. It holds the outcome.
    pub async fn run(&mut self, prompt: &str) -> Result<RunOutcome, RunError> {
        self.turn(prompt).run().await
    }

    /// Answers a message of the user with a value of a type.
    ///
    /// # Errors
    /// As [`run`](Conversation::run); [`RunFailure::AnswerMalformed`](super::RunFailure::AnswerMalformed) when the answer is
    /// no such value.
    pub async fn run_typed<T>(&mut self, prompt: &str) -> Result<TypedOutcome<T>, RunError>
    where
        T: DeserializeOwned + schemars::JsonSchema,
    {
        self.turn(prompt).run_typed().await
    }

    /// Waits for a call that went on in the background, and lets the model answer what came of it. `None` when none is to come.
    ///
    /// For a conversation that is idle: an application waits for its user and for this at once. Dropped while it waits, it has
    /// done nothing; dropped later, it is like any run.
    ///
    /// ```no_run
    /// # async fn next_line() -> String { String::new() }
    /// # async fn example(mut conversation: toolwit_agent::Conversation) -> Result<(), toolwit_agent::RunError> {
    /// loop {
    ///     let outcome = tokio::select! {
    ///         line = next_line() => conversation.run(&line).await?,
    ///         Some(woken) = conversation.wake() => woken?,
    ///     };
    ///     println!("{}", outcome.text());
    /// }
    /// # }
    /// ```
    pub async fn wake(&mut self) -> Option<Result<RunOutcome, RunError>> {
        let cancel = self.context.cancel().clone();
        let is_there = tokio::select! {
            biased;
            () = cancel.cancelled() => false,
            is_there = self.late.wait() => is_there,
        };
        if !is_there {
            return None;
        }
        let context = self.context.clone();
        Some(ToolLoop::new(self, &context).run(None).await)
    }

    /// Returns how many calls go on in the background.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.late.outstanding()
    }

    /// Returns what the conversation is about, what it has done and what it may still use.
    #[must_use]
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Prepares a turn that has a context, a cancel token or an output of its own.
    pub fn turn(&mut self, prompt: impl Into<String>) -> UserTurn<'_> {
        UserTurn::new(self, prompt.into())
    }

    /// Returns what was said so far.
    #[must_use]
    pub fn history(&self) -> &[Message] {
        self.history.messages()
    }

    /// Returns the tools that can be called.
    #[must_use]
    pub fn tools(&self) -> &ToolSet {
        self.toolbox.callable()
    }

    /// Returns the entities that were met.
    #[must_use]
    pub fn entities(&self) -> &Entities {
        self.toolbox.entities()
    }

    /// Returns what the conversation's tools share.
    #[must_use]
    pub fn blackboard(&self) -> &Arc<dyn Blackboard> {
        &self.blackboard
    }

    /// Adds a tool, or puts it in the place of the one with its id. The model is shown it from the next turn on.
    pub fn add_tool(&mut self, tool: Arc<dyn Tool>) -> ToolName {
        self.toolbox.add_fixed(tool)
    }

    /// Removes a tool, if it is there. The model is no longer shown it from the next turn on.
    pub fn remove_tool(&mut self, id: &ToolId) -> Option<ToolName> {
        self.toolbox.remove(id)
    }

    /// What adds the tool that reads on, unless it is there.
    pub(super) fn reader_when_missing(&self) -> Injection {
        match self.tools().by_id(&self.reader.definition().id) {
            Some(_) => Injection::none(),
            None => Injection::add(vec![self.reader.clone()]),
        }
    }
}
