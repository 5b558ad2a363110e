//! The conversation, as an application uses it.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::builder::ConversationBuilder;
use super::suspension::Suspension;
use super::user_turn::{TypedOutcome, UserTurn, resume};
use crate::event::{Event, Resolution};
use crate::injection::Entities;
use crate::journal::{InterruptedRun, OpenCall};
use crate::outcome::{RunError, RunOutcome};
use crate::process::{AgentProcess, Budget};
use crate::replay::StartedReplay;
use crate::run::ToolLoop;
use crate::state::ConversationState;
use toolwit_core::{Blackboard, Error, Message, Tool, ToolId, ToolName, ToolSet};

/// A conversation with a model that has tools: its history, its tools and the live entities behind them.
///
/// Each [`run`](Conversation::run) answers one user message. However it ends (an answer, a limit, an error, a cancellation,
/// or a dropped future), the history stays valid and the conversation can continue. If the future is dropped before the turn
/// begins, while [tool sources](crate::ToolSource) are queried, the message does not enter the history. Entities live until the
/// conversation is dropped.
pub struct Conversation {
    pub(super) state: ConversationState,
}

impl Conversation {
    /// Returns the data of the conversation, for a [`ToolSession`](crate::ToolSession), which has no model.
    pub(crate) fn into_state(self) -> ConversationState {
        self.state
    }

    /// Returns a builder.
    #[must_use]
    pub fn builder() -> ConversationBuilder {
        ConversationBuilder::default()
    }

    /// Answers a user message.
    ///
    /// # Errors
    /// [`RunError`] if a limit, a failure or a cancellation prevents a complete answer. It contains the outcome so far.
    pub async fn run(&mut self, prompt: &str) -> Result<RunOutcome, RunError> {
        self.turn(prompt).run().await
    }

    /// Answers a user message with a value of type `T`. If the first answer is not a `T`, the model may correct it once.
    ///
    /// # Errors
    /// As [`run`](Conversation::run); [`RunFailure::AnswerMalformed`](crate::RunFailure::AnswerMalformed) if the answer is not
    /// a `T`.
    pub async fn run_typed<T>(&mut self, prompt: &str) -> Result<TypedOutcome<T>, RunError>
    where
        T: DeserializeOwned + schemars::JsonSchema,
    {
        self.turn(prompt).run_typed().await
    }

    /// Waits until a late result of a background call has arrived, and returns `true`. [`wake`](Self::wake) then runs the model
    /// on the result without waiting. Returns `false` if no result is expected, or the conversation is cancelled. If the future is
    /// dropped, no result is lost.
    pub async fn wait_for_late_result(&mut self) -> bool {
        let cancel = self.state.context.cancel_token().clone();
        tokio::select! {
            biased;
            () = cancel.cancelled() => false,
            has_arrived = self.state.late_results.wait() => has_arrived,
        }
    }

    /// Waits for a late result of a background call, and runs the model on the result. Returns `None` if no result is expected, or
    /// the conversation is cancelled.
    ///
    /// Call this method while the conversation is idle: an application can wait for its user and for late results at the same time.
    /// If the future is dropped while it waits, no result is lost. If it is dropped later, the run ends as cancelled.
    ///
    /// ```no_run
    /// # async fn next_line() -> String { String::new() }
    /// # async fn example(mut conversation: toolwit_agent::Conversation) -> Result<(), toolwit_agent::RunError> {
    /// loop {
    ///     let outcome = tokio::select! {
    ///         line = next_line() => conversation.run(&line).await?,
    ///         Some(outcome) = conversation.wake() => outcome?,
    ///     };
    ///     println!("{}", outcome.text());
    /// }
    /// # }
    /// ```
    pub async fn wake(&mut self) -> Option<Result<RunOutcome, RunError>> {
        if !self.wait_for_late_result().await {
            return None;
        }
        let context = self.state.context.clone();
        Some(ToolLoop::new(&mut self.state, &context).run(None).await)
    }

    /// Returns the run that an earlier process did not finish, if the conversation was built with its
    /// [journal](ConversationBuilder::journal). Returns `None` once the run is resumed, or a new turn
    /// begins.
    #[must_use]
    pub fn interrupted_run(&self) -> Option<&InterruptedRun> {
        self.state.interrupted_run.as_ref()
    }

    /// Pins the last message of the user: when the history is [compacted](ConversationBuilder::context_tokens_max), no summary
    /// replaces it. Returns its text, or `None` if the history has no message of the user.
    ///
    /// # Errors
    /// If the [journal](ConversationBuilder::journal) cannot be written.
    pub async fn pin_last_user_message(&mut self) -> Result<Option<&str>, Error> {
        let Some(pinned) = self.state.history.pin_last_user_message() else {
            return Ok(None);
        };
        self.state.observers.emit(&Event::MessagePinned);
        if let Some(journal) = &self.state.journal {
            journal.commit().await?;
        }
        Ok(Some(pinned))
    }

    /// Returns a handle that suspends a run, so that another process can continue it. Returns `None` for a conversation without
    /// a [journal](ConversationBuilder::journal).
    #[must_use]
    pub fn suspension(&self) -> Option<Suspension> {
        self.state.journal.clone().map(Suspension)
    }

    /// Stores a decision about a call of the interrupted run that began and did not end, such as an
    /// [unresolved call](InterruptedRun::unresolved). A call that would run again without a decision can be decided too, for
    /// example if its tool is gone. `id` is the id of the call. Returns `false` if no such call has this id.
    pub fn resolve_call(&mut self, id: &str, resolution: Resolution) -> bool {
        let mut open_calls = self
            .state
            .interrupted_run
            .iter_mut()
            .flat_map(|run| &mut run.open_calls);
        let is_undecided = |open: &&mut OpenCall| open.resolution.is_none() && open.runs_again();
        let Some(open_call) = open_calls.find(|open| open.call.id == id && is_undecided(open)) else {
            return false;
        };
        open_call.resolution = Some(resolution);
        self.state.observers.emit(&Event::CallResolved {
            id: id.to_owned(),
            resolution,
        });
        true
    }

    /// Continues the [interrupted run](Self::interrupted_run). Returns `None` if the conversation has no interrupted
    /// run.
    ///
    /// Calls that ended are answered from the journal. Calls that began run again if their effect class allows it. A request
    /// without a response is sent again, and charged again. If the run has an answer schema of the type `object`, the answer is
    /// checked, and corrected by the model at most once. The answer in the outcome is then only the JSON.
    ///
    /// # Errors
    /// As [`run`](Self::run). If the decision about an [unresolved call](InterruptedRun::unresolved) is missing, the failure is
    /// [`RunFailure::Tool`](crate::RunFailure::Tool) and the conversation is unchanged: decide with
    /// [`resolve_call`](Self::resolve_call), then resume again. The same applies if the tool of a call is gone that began, or
    /// that waits for an approval and was not denied: the run can be resumed when the tool is available again.
    pub async fn resume_run(&mut self, cancel: CancellationToken) -> Option<Result<RunOutcome, RunError>> {
        self.state.interrupted_run.as_ref()?;
        let context = self.state.context.clone().with_cancel_token(cancel);
        Some(resume(&mut self.state, &context).await)
    }

    /// Runs the recorded turns of a [replay](ConversationBuilder::replay), with the schemas of their answers, until a turn differs
    /// from the trace or `cancel` is cancelled. Returns the outcome of the last turn that ran, or `None` if no turn ran.
    ///
    /// # Errors
    /// As [`run`](Self::run), and with [`ModelError::Diverged`](crate::model::ModelError::Diverged) or
    /// [`RunFailure::Tool`](crate::RunFailure::Tool) for a [divergence](StartedReplay::divergence).
    pub async fn run_replay(
        &mut self,
        replay: &StartedReplay,
        cancel: CancellationToken,
    ) -> Option<Result<RunOutcome, RunError>> {
        let mut last_outcome = None;
        for (prompt, schema) in replay.recording().turns() {
            if cancel.is_cancelled() || replay.divergence().is_some() {
                break;
            }
            let outcome = match prompt {
                Some(prompt) => {
                    let context = self.state.context.clone().with_cancel_token(cancel.clone());
                    let mut run = ToolLoop::new(&mut self.state, &context);
                    if let Some(schema) = schema {
                        run = run.with_answer_schema(schema.clone());
                    }
                    Some(run.run(Some(prompt)).await)
                }
                None => self.wake().await,
            };
            last_outcome = outcome.or(last_outcome);
        }
        last_outcome
    }

    /// Returns the number of background calls whose results the model has not read yet.
    #[must_use]
    pub fn background_calls(&self) -> usize {
        self.state.late_results.open_call_count()
    }

    /// Returns the goal, the actions and the budget of the conversation.
    #[must_use]
    pub fn process(&self) -> &Arc<AgentProcess> {
        &self.state.process
    }

    /// Changes the budget, which counts the usage of all runs so far. A conversation whose budget was exhausted can continue
    /// with a higher one.
    pub fn set_budget(&mut self, budget: Budget) {
        self.state.process.account().set_budget(budget);
    }

    /// Prepares a turn with its own settings, such as a context, a cancellation token or roles.
    pub fn turn(&mut self, prompt: impl Into<String>) -> UserTurn<'_> {
        UserTurn::new(&mut self.state, prompt.into())
    }

    /// Returns the messages so far.
    #[must_use]
    pub fn history(&self) -> &[Message] {
        self.state.history.messages()
    }

    /// Returns the callable tools.
    #[must_use]
    pub fn tools(&self) -> &ToolSet {
        self.state.toolbox.callable()
    }

    /// Returns the entities that were discovered.
    #[must_use]
    pub fn entities(&self) -> &Entities {
        self.state.toolbox.entities()
    }

    /// Returns the blackboard that the tools share.
    #[must_use]
    pub fn blackboard(&self) -> &Arc<dyn Blackboard> {
        &self.state.blackboard
    }

    /// Adds a tool, or replaces the tool with the same id. The tool is declared to the model from the next turn. Returns its
    /// name.
    pub fn add_tool(&mut self, tool: Arc<dyn Tool>) -> ToolName {
        let admission_events = self.state.toolbox.admit_tool(&tool);
        admission_events
            .iter()
            .for_each(|event| self.state.observers.emit(event));
        self.state.toolbox.add_configured(tool).name().clone()
    }

    /// Removes a tool for the rest of the conversation: no facade, search or changed package adds it again. Only
    /// [`add_tool`](Self::add_tool) does. The tool is declared to the model until the next turn.
    ///
    /// The id also removes the tool behind facades and under other names. Returns the names of the removed tools.
    pub fn remove_tool(&mut self, id: &ToolId) -> Vec<ToolName> {
        let names = self.state.toolbox.exclude(id);
        self.state.observers.emit(&Event::ToolExcluded { tool: id.clone() });
        names
    }
}
