//! The response to one inference.

use serde::{Deserialize, Serialize};

use toolwit_core::{ProviderBlock, ToolCall};

/// The response of a model.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ChatResponse {
    /// Text, possibly in addition to calls.
    pub content: String,
    /// Readable reasoning, if the provider shows it. It is not part of the history.
    pub reasoning: String,
    /// The model's explanation why it does not answer, if the provider separates it from the text.
    pub refusal: Option<String>,
    /// Requested tool calls. The loop replaces an id that is empty, too long or not unique.
    pub tool_calls: Vec<ToolCall>,
    /// Parts that later requests must return to the provider, such as thinking blocks with signatures.
    pub blocks: Vec<ProviderBlock>,
    /// Reason why generation stopped.
    pub finish: FinishReason,
    /// The same reason under the provider's own name, if the provider returned one.
    pub stop_reason: Option<String>,
    /// Token usage.
    pub usage: TokenUsage,
}

impl ChatResponse {
    /// Creates a response with the finish reason [`Stop`](FinishReason::Stop), or
    /// [`ToolCalls`](FinishReason::ToolCalls) if it has calls.
    #[must_use]
    pub fn new(content: impl Into<String>, tool_calls: Vec<ToolCall>) -> Self {
        let finish = if tool_calls.is_empty() {
            FinishReason::Stop
        } else {
            FinishReason::ToolCalls
        };
        Self {
            content: content.into(),
            tool_calls,
            finish,
            ..Self::default()
        }
    }

    /// Returns the text, or the refusal if there is no text.
    #[must_use]
    pub fn text(&self) -> &str {
        match &self.refusal {
            Some(refusal) if self.content.is_empty() => refusal,
            _ => &self.content,
        }
    }
}

/// The reason why a model stopped generating.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The response is complete.
    #[default]
    Stop,
    /// The model waits for the results of its calls.
    ToolCalls,
    /// The response was truncated. Its last call may be incomplete, and is then not executed.
    Length,
    /// The provider's content filter withheld the response.
    ContentFilter,
    /// The model refused to answer.
    Refusal,
    /// The provider paused the response, for example after many calls of its own tools. To continue it, append the response
    /// to the history and send the next request.
    Paused,
    /// Another reason, as the provider named it.
    Other(String),
}

impl FinishReason {
    /// Returns whether all calls of a response with this reason are complete. If not, the last call can be incomplete.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Stop | Self::ToolCalls | Self::Paused)
    }
}

/// Token usage of one or more inferences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TokenUsage {
    /// Input tokens, including those that the provider read from or wrote to its prompt cache.
    pub input_tokens: u64,
    /// Input tokens that the provider read from its prompt cache.
    pub cached_tokens: u64,
    /// Output tokens, including reasoning.
    pub output_tokens: u64,
    /// Input tokens that the provider wrote to its prompt cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Output tokens that were reasoning, if the provider counts them separately.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
}

impl TokenUsage {
    /// Creates a usage without cache writes and reasoning.
    #[must_use]
    pub fn new(input_tokens: u64, cached_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            cached_tokens,
            output_tokens,
            ..Self::default()
        }
    }

    /// Sets the input tokens that were written to the prompt cache.
    #[must_use]
    pub fn with_cache_write(mut self, tokens: u64) -> Self {
        self.cache_write_tokens = tokens;
        self
    }

    /// Sets the output tokens that were reasoning.
    #[must_use]
    pub fn with_reasoning(mut self, tokens: u64) -> Self {
        self.reasoning_tokens = tokens;
        self
    }

    /// Subtracts another usage. A count that would be negative becomes zero.
    pub(crate) fn saturating_sub(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(other.cached_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_sub(other.cache_write_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_sub(other.reasoning_tokens),
        }
    }
}

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
    }
}
