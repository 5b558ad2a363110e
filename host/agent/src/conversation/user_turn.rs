//! One turn with its own settings.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::answer_schema::AnswerSchema;
use crate::outcome::{RunError, RunFailure, RunOutcome, StopReason};
use crate::run::ToolLoop;
use crate::state::ConversationState;
use toolwit_core::{OutputSink, Picture, ToolContext};

/// A user message that has not been answered, with the settings of its turn.
///
/// ```no_run
/// # async fn example(mut conversation: toolwit_agent::Conversation) -> Result<(), toolwit_agent::RunError> {
/// use tokio_util::sync::CancellationToken;
/// use toolwit_core::ToolContext;
///
/// let cancel = CancellationToken::new();
/// let outcome = conversation
///     .turn("What is in my cart?")
///     .context(ToolContext::new().with("channel", "chat").with("chat_id", "42"))
///     .cancel(cancel.clone())
///     .run()
///     .await?;
/// # Ok(()) }
/// ```
#[must_use = "a turn does nothing until it is run"]
pub struct UserTurn<'c> {
    state: &'c mut ConversationState,
    prompt: String,
    context: ToolContext,
    roles: Vec<String>,
    pictures: Vec<Picture>,
}

/// An answer as a value of type `T`, with the outcome of its run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TypedOutcome<T> {
    /// The answer.
    pub value: T,
    /// The outcome of the run.
    pub outcome: RunOutcome,
}

impl<'c> UserTurn<'c> {
    pub(super) fn new(state: &'c mut ConversationState, prompt: String) -> Self {
        let context = state.context.clone();
        Self {
            state,
            prompt,
            context,
            roles: Vec::new(),
            pictures: Vec::new(),
        }
    }

    /// Adds a context to that of the conversation. The values of the added context take precedence.
    pub fn context(mut self, context: ToolContext) -> Self {
        self.context = self.context.merged_with(&context);
        self
    }

    /// Sets a token that cancels this turn. The token of the conversation cancels it too.
    pub fn cancel(mut self, cancel: CancellationToken) -> Self {
        self.context = self.context.with_cancel_token(cancel);
        self
    }

    /// Sets the output for this turn.
    pub fn output(mut self, output: Arc<dyn OutputSink>) -> Self {
        self.context = self.context.with_output(output);
        self
    }

    /// Adds the tools of a role of the conversation's [`groups`](crate::ConversationBuilder::groups), for this turn only.
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.roles.push(role.into());
        self
    }

    /// Adds a picture to the message, at most
    /// [`PICTURES_PER_MESSAGE_MAX`](toolwit_core::limits::PICTURES_PER_MESSAGE_MAX). A model that takes no pictures reads that it
    /// does not receive it; see [`ChatModel::accepts_pictures`](crate::model::ChatModel::accepts_pictures).
    pub fn picture(mut self, picture: Picture) -> Self {
        self.pictures.push(picture);
        self
    }

    /// Runs the turn.
    ///
    /// # Errors
    /// As [`Conversation::run`](crate::Conversation::run).
    pub async fn run(self) -> Result<RunOutcome, RunError> {
        let run = ToolLoop::new(self.state, &self.context).with_roles(self.roles);
        run.with_pictures(self.pictures).run(Some(&self.prompt)).await
    }

    /// Runs the turn until no background call is open, within the limits of one run.
    pub(crate) async fn run_with_background(self) -> Result<RunOutcome, RunError> {
        let run = ToolLoop::new(self.state, &self.context).with_roles(self.roles);
        let run = run.with_pictures(self.pictures).awaiting_background();
        run.run(Some(&self.prompt)).await
    }

    /// Runs the turn and parses its answer as a `T`. The prompt contains the schema of `T`, the model receives it as
    /// [`ChatOptions::answer_schema`](crate::model::ChatOptions::answer_schema), and the answer is parsed as JSON, with or
    /// without a code fence. If it is not a `T`, the model receives the reason and answers once more; the outcome then has the
    /// usage of both runs. An answer that a tool gave is not corrected.
    ///
    /// # Errors
    /// As [`Conversation::run_typed`](crate::Conversation::run_typed).
    pub async fn run_typed<T>(self) -> Result<TypedOutcome<T>, RunError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let schema = schemars::schema_for!(T).to_value();
        let parse = |text: &str| serde_json::from_str(text).map_err(|error| error.to_string());
        self.run_with_answer_schema(&schema, parse).await
    }

    /// Runs the turn and parses its answer as JSON that fits a schema, like [`run_typed`](Self::run_typed) for a schema that is
    /// known at run time only.
    ///
    /// # Errors
    /// As [`Conversation::run_typed`](crate::Conversation::run_typed).
    pub async fn run_json(self, schema: &AnswerSchema) -> Result<TypedOutcome<Value>, RunError> {
        self.run_with_answer_schema(schema.schema(), |text| schema.parse(text))
            .await
    }

    /// Runs the turn with the schema in its prompt, and parses the answer.
    async fn run_with_answer_schema<T>(
        self,
        schema: &Value,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<TypedOutcome<T>, RunError> {
        let prompt = format!(
            "{}\n\nWhen you are done, answer only with JSON that fits this schema:\n{schema}",
            self.prompt
        );
        let first_run = ToolLoop::new(self.state, &self.context)
            .with_roles(self.roles.clone())
            .with_pictures(self.pictures)
            .with_answer_schema(schema.clone());
        let first_outcome = first_run.run(Some(&prompt)).await?;
        parse_or_correct(self.state, &self.context, self.roles, schema, parse, first_outcome).await
    }
}

/// Parses the answer of a run. If it does not fit, the model receives the reason and answers once more.
async fn parse_or_correct<T>(
    state: &mut ConversationState,
    context: &ToolContext,
    roles: Vec<String>,
    schema: &Value,
    parse: impl Fn(&str) -> Result<T, String>,
    first_outcome: RunOutcome,
) -> Result<TypedOutcome<T>, RunError> {
    let parse_answer = |text: &str| parse(without_fence(text));
    let error = match parse_answer(first_outcome.text()) {
        Ok(value) => {
            return Ok(TypedOutcome {
                value,
                outcome: first_outcome,
            });
        }
        // Only the model can correct its answer, not a tool that ended the run.
        Err(error) if first_outcome.stop != StopReason::Answered => return Err(malformed_answer(error, first_outcome)),
        Err(error) => error,
    };
    let repair_prompt =
        format!("The answer does not fit the schema: {error}\n\nAnswer again, only with JSON that fits it.");
    let outcome = match run_with_schema(state, context, roles, &repair_prompt, schema).await {
        Ok(second_outcome) => second_outcome.with_earlier_run(first_outcome),
        Err(mut error) => {
            let outcome = error.outcome.with_earlier_run(first_outcome);
            error.outcome = Box::new(outcome);
            return Err(error);
        }
    };
    match parse_answer(outcome.text()) {
        Ok(value) => Ok(TypedOutcome { value, outcome }),
        Err(error) => Err(malformed_answer(error, outcome)),
    }
}

/// Continues the interrupted run of a conversation. If the run has an answer schema, the answer is checked, and corrected at most
/// once, as in [`UserTurn::run_json`]. The answer in the outcome is then only the JSON.
pub(super) async fn resume(state: &mut ConversationState, context: &ToolContext) -> Result<RunOutcome, RunError> {
    let schema = state
        .interrupted_run
        .as_ref()
        .and_then(|run| run.answer_schema.as_deref().cloned());
    let outcome = ToolLoop::new(state, context).resume().await?;
    // A type `T` of `run_typed` can have a schema that is not of type `object`. The application then parses the answer itself.
    let Some(schema) = schema.and_then(|schema| AnswerSchema::new(schema).ok()) else {
        return Ok(outcome);
    };
    let parse = |text: &str| schema.parse(text);
    let typed = parse_or_correct(state, context, Vec::new(), schema.schema(), parse, outcome).await?;
    let mut outcome = typed.outcome;
    outcome.answer = Some(format!("{:#}", typed.value));
    Ok(outcome)
}

/// Runs a turn whose request has the schema of the answer. Not every model enforces the schema, so the
/// answer may not fit.
async fn run_with_schema(
    state: &mut ConversationState,
    context: &ToolContext,
    roles: Vec<String>,
    prompt: &str,
    schema: &Value,
) -> Result<RunOutcome, RunError> {
    let run = ToolLoop::new(state, context).with_roles(roles);
    run.with_answer_schema(schema.clone()).run(Some(prompt)).await
}

fn malformed_answer(message: String, outcome: RunOutcome) -> RunError {
    RunError::new(RunFailure::AnswerMalformed { message }, outcome)
}

/// Returns the content of the first code fence, or the full text if it has no code fence.
fn without_fence(text: &str) -> &str {
    let Some((_, fenced)) = text.split_once("```") else {
        return text;
    };
    let body = fenced.split_once("```").map_or(fenced, |(body, _)| body);
    match body.split_once('\n') {
        Some((language, json)) if language.trim().chars().all(char::is_alphanumeric) => json,
        _ => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // accept: 5
    #[test]
    fn a_code_fence_around_an_answer_is_removed() {
        for text in ["{}", "```json\n{}\n```", "Here it is:\n```\n{}\n```\nBye.", "```{}```"] {
            assert_eq!(without_fence(text).trim(), "{}", "{text}");
        }
    }
}
