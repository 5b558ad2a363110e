//! One message of the user, with what belongs to it alone.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::conversation::Conversation;
use super::failure::{RunError, RunFailure};
use super::outcome::RunOutcome;
use super::tool_loop::ToolLoop;
use toolwit_core::{OutputSink, ToolContext};

/// A message of the user that is about to be answered.
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
#[must_use = "nothing is asked until it is run"]
pub struct UserTurn<'c> {
    conversation: &'c mut Conversation,
    prompt: String,
    context: ToolContext,
}

/// An answer as a value, with the run that led to it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TypedOutcome<T> {
    /// The answer.
    pub value: T,
    /// The run.
    pub outcome: RunOutcome,
}

impl<'c> UserTurn<'c> {
    pub(super) fn new(conversation: &'c mut Conversation, prompt: String) -> Self {
        let context = conversation.context.clone();
        Self {
            conversation,
            prompt,
            context,
        }
    }

    /// Adds to the conversation's context; what is here wins.
    pub fn context(mut self, context: ToolContext) -> Self {
        self.context = self.context.merged_with(&context);
        self
    }

    /// Sets the token that cancels this turn; the conversation's own does so too.
    pub fn cancel(mut self, cancel: CancellationToken) -> Self {
        self.context = self.context.with_cancel(cancel);
        self
    }

    /// Sends what tools have to say to the user of this turn here.
    pub fn output(mut self, output: Arc<dyn OutputSink>) -> Self {
        self.context = self.context.with_output(output);
        self
    }

    /// Asks for the answer.
    ///
    /// # Errors
    /// As [`Conversation::run`].
    pub async fn run(self) -> Result<RunOutcome, RunError> {
        ToolLoop::new(self.conversation, &self.context)
            .run(Some(&self.prompt))
            .await
    }

    /// Asks for the answer as a value: the model is told the schema of `T`, and its text is read as JSON, with or without a
    /// code fence around it.
    ///
    /// # Errors
    /// As [`Conversation::run_typed`].
    pub async fn run_typed<T>(self) -> Result<TypedOutcome<T>, RunError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let schema = schemars::schema_for!(T).to_value();
        let prompt = format!(
            "{}\n\nWhen you are done, answer with nothing but JSON that fits this schema:\n{schema}",
            self.prompt
        );
        let outcome = ToolLoop::new(self.conversation, &self.context)
            .run(Some(&prompt))
            .await?;
        match serde_json::from_str(without_fence(outcome.text())) {
            Ok(value) => Ok(TypedOutcome { value, outcome }),
            Err(error) => {
                let message = error.to_string();
                Err(RunError::new(RunFailure::AnswerMalformed { message }, outcome))
            }
        }
    }
}

/// Takes what stands in the first code fence, or everything when there is none.
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
    fn a_fence_around_an_answer_is_taken_off() {
        for text in ["{}", "```json\n{}\n```", "Here it is:\n```\n{}\n```\nBye.", "```{}```"] {
            assert_eq!(without_fence(text).trim(), "{}", "{text}");
        }
    }
}
