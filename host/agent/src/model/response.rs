//! The response to one inference.

use serde::{Deserialize, Serialize};

use toolwit_core::ToolCall;

/// The response of a model.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ChatResponse {
    /// Text, possibly in addition to calls.
    pub content: String,
    /// Requested tool calls, each with a unique id.
    pub tool_calls: Vec<ToolCall>,
    /// Reason why generation stopped.
    pub finish: FinishReason,
    /// Token usage.
    pub usage: TokenUsage,
}

impl ChatResponse {
    /// Creates a response with the finish reason [`Stop`](FinishReason::Stop), or [`ToolCalls`](FinishReason::ToolCalls) if
    /// it has calls.
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
            usage: TokenUsage::default(),
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
    /// The response was truncated. Its last call may be incomplete and is not executed.
    Length,
    /// The provider's content filter withheld the response.
    ContentFilter,
    /// Another reason, as the provider named it.
    Other(String),
}

/// Token usage of one or more inferences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TokenUsage {
    /// Input tokens, including cached ones.
    pub input_tokens: u64,
    /// Input tokens that the provider read from its prompt cache.
    pub cached_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
}

impl TokenUsage {
    /// Creates a usage record.
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
