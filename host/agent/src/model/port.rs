//! The port through which the loop asks a language model.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::error::ModelError;
use super::price::Price;
use toolwit_core::{Message, ToolCall, ToolDefinition, ToolName};

/// A language model that answers one turn. The loop, never the model's client, runs the tools.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Returns the model's name, as told to the provider.
    fn name(&self) -> &str;

    /// Asks for one turn: a single inference over the whole history.
    ///
    /// # Errors
    /// [`ModelError`], after what may be retried was retried.
    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError>;

    /// Returns what its tokens cost, where that is known; [`PricedModel`](super::PricedModel) says it for any model.
    fn price(&self) -> Option<Price> {
        None
    }

    /// Says whether the provider itself can hold tools back until the model looks for them: whether
    /// [`Delivery::Native`] is possible. None of the adapters here can.
    fn supports_deferred_tools(&self) -> bool {
        false
    }

    /// Tells the model that nothing more will be asked.
    ///
    /// Only a scripted model has something to say about it; the others are done at any time.
    ///
    /// # Errors
    /// [`ModelError::Script`] when turns of the scenario are left over.
    fn finish(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

#[async_trait]
impl<M: ChatModel + ?Sized> ChatModel for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        (**self).chat(request).await
    }

    fn price(&self) -> Option<Price> {
        (**self).price()
    }

    fn supports_deferred_tools(&self) -> bool {
        (**self).supports_deferred_tools()
    }

    fn finish(&self) -> Result<(), ModelError> {
        (**self).finish()
    }
}

/// One inference: the history, the tools that may be called, and how to answer.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ChatRequest<'a> {
    /// What was said so far, the system's instructions first.
    pub messages: &'a [Message],
    /// The tools that are declared, in a stable order.
    pub tools: &'a [DeclaredTool],
    /// How to answer.
    pub options: &'a ChatOptions,
    /// Stops the request.
    pub cancel: &'a CancellationToken,
    /// Hears the text piece by piece while it is produced.
    hear: Option<&'a (dyn Fn(&str) + Send + Sync)>,
}

impl<'a> ChatRequest<'a> {
    /// Makes a request.
    #[must_use]
    pub fn new(
        messages: &'a [Message],
        tools: &'a [DeclaredTool],
        options: &'a ChatOptions,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self {
            messages,
            tools,
            options,
            cancel,
            hear: None,
        }
    }

    /// Lets somebody hear the text while it is produced.
    #[must_use]
    pub fn with_text_listener(mut self, hear: &'a (dyn Fn(&str) + Send + Sync)) -> Self {
        self.hear = Some(hear);
        self
    }

    /// Says a piece of the text, for a model that streams: the pieces together are the text of the response.
    pub fn emit_text(&self, text: &str) {
        if let Some(hear) = self.hear {
            hear(text);
        }
    }
}

/// How tools that come in during a conversation reach the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delivery {
    /// They are declared, after those that are there. What stands before them in the prompt stays cached.
    #[default]
    List,
    /// The declared tools never change: one of them, `call_tool`, calls all others, and the result that brings a tool in
    /// describes it. For providers where any change of the tools costs the cached prompt.
    Gateway,
    /// The provider holds them back until the model looks for them. A conversation refuses it where
    /// [`ChatModel::supports_deferred_tools`] says no.
    Native,
}

/// A tool as it is declared to the model.
#[derive(Clone, Debug)]
pub struct DeclaredTool {
    /// The name to call it by.
    pub name: ToolName,
    /// What the model is told.
    pub definition: Arc<ToolDefinition>,
}

/// How to answer. What is not set is left to the provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatOptions {
    /// The most tokens of an answer.
    pub max_tokens: Option<u32>,
    /// The sampling temperature, 0 to 2.
    pub temperature: Option<f64>,
    /// Whether the model may call tools.
    pub tool_choice: ToolChoice,
}

/// Whether the model may call tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must answer in text.
    None,
    /// The model must call a tool.
    Required,
}

/// What the model said.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ChatResponse {
    /// The text, also when calls accompany it.
    pub content: String,
    /// The tools that it wants called, each with an id of its own.
    pub tool_calls: Vec<ToolCall>,
    /// Why it stopped.
    pub finish: FinishReason,
    /// What it cost.
    pub usage: TokenUsage,
}

impl ChatResponse {
    /// Makes an answer that stopped because it was done, or because its calls wait for their results.
    #[must_use]
    pub fn new(content: impl Into<String>, tool_calls: Vec<ToolCall>) -> Self {
        let finish = match tool_calls.is_empty() {
            true => FinishReason::Stop,
            false => FinishReason::ToolCalls,
        };
        Self {
            content: content.into(),
            tool_calls,
            finish,
            usage: TokenUsage::default(),
        }
    }
}

/// Why a model stopped speaking.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// It was done.
    #[default]
    Stop,
    /// It waits for the results of its calls.
    ToolCalls,
    /// The answer was cut; the last call may be incomplete and is not executed.
    Length,
    /// The provider held the answer back.
    ContentFilter,
    /// Something else, in the provider's word.
    Other(String),
}

/// Tokens of one or more inferences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TokenUsage {
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Those of them that the provider had cached.
    pub cached_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
}

impl TokenUsage {
    /// Counts tokens.
    #[must_use]
    pub fn new(input_tokens: u64, cached_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            cached_tokens,
            output_tokens,
        }
    }
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
    }
}
