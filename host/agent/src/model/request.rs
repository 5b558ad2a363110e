//! A request for one inference.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::delta::ChatDelta;
use toolwit_core::{Message, ToolDefinition, ToolName};

type DeltaListener<'a> = &'a (dyn Fn(ChatDelta<'_>) + Send + Sync);

/// A request for one inference: the history, the declared tools and the options.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ChatRequest<'a> {
    /// The history. A system message, if there is one, comes first.
    pub messages: &'a [Message],
    /// The declared tools, in a stable order.
    pub tools: &'a [DeclaredTool],
    /// Options of the inference.
    pub options: &'a ChatOptions,
    /// Cancels the request.
    pub cancel: &'a CancellationToken,
    /// The way in which injected tools reach the model. With [`ToolDelivery::Native`], a client of a provider must send the tools in
    /// a special form. The other ways do not concern the client: they only determine which tools are in `tools`.
    pub delivery: ToolDelivery,
    /// Receives the response in pieces while it is produced.
    listener: Option<DeltaListener<'a>>,
    /// Whether the listener shows the pieces to a person.
    shows_pieces: bool,
}

impl<'a> ChatRequest<'a> {
    /// Creates a request.
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
            delivery: ToolDelivery::List,
            listener: None,
            shows_pieces: true,
        }
    }

    /// Sets the way in which the tools reach the model.
    #[must_use]
    pub fn with_delivery(mut self, delivery: ToolDelivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// Sets a listener that receives the response in pieces while it is produced.
    #[must_use]
    pub fn with_listener(mut self, listener: &'a (dyn Fn(ChatDelta<'_>) + Send + Sync)) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Sets whether the listener shows the pieces of the text and the reasoning to a person. The default is `true`: a client
    /// then does not request a response again of which it has passed on a part, because the person would read the part
    /// twice.
    #[must_use]
    pub fn with_shown_pieces(mut self, are_shown: bool) -> Self {
        self.shows_pieces = are_shown;
        self
    }

    /// Returns whether the request has a listener that shows the pieces of the response to a person.
    #[must_use]
    pub fn shows_pieces(&self) -> bool {
        self.shows_pieces && self.listener.is_some()
    }

    /// Returns whether the request has a listener.
    #[must_use]
    pub fn has_listener(&self) -> bool {
        self.listener.is_some()
    }

    /// Passes a piece of the response to the listener, if there is one. A model that streams calls this for each piece. The
    /// response that the model returns contains all pieces again.
    pub fn emit(&self, delta: ChatDelta<'_>) {
        if let Some(listener) = self.listener {
            listener(delta);
        }
    }

    /// Passes a piece of the text to the listener, if there is one.
    pub fn emit_text(&self, text: &str) {
        self.emit(ChatDelta::Text(text));
    }
}

/// The way in which tools that are injected during a conversation reach the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolDelivery {
    /// Injected tools are declared after the existing tools, so that the prompt before them stays in the prompt cache.
    #[default]
    List,
    /// Injected tools are not declared. A declared tool, `call_tool`, calls them by name, and the result that injects a
    /// tool describes the tool. This suits providers whose prompt cache is invalidated by any change of the declared tools.
    Gateway,
    /// The provider adds a tool to the prompt only when the model has searched for it. A conversation rejects this
    /// option if [`ChatModel::supports_deferred_tools`](super::ChatModel::supports_deferred_tools) returns `false`.
    Native,
}

/// A tool that is declared to the model.
#[derive(Clone, Debug)]
pub struct DeclaredTool {
    /// Name under which the model calls the tool.
    pub name: ToolName,
    /// Definition that the model receives.
    pub definition: Arc<ToolDefinition>,
}

/// Options of an inference. For options that are not set, the defaults of the provider or of its client apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatOptions {
    /// Maximum number of tokens of the response. If it is not set, clients of providers send a default limit, which stops a
    /// model that repeats itself endlessly.
    pub max_tokens: Option<u32>,
    /// Sampling temperature, 0 to 2.
    pub temperature: Option<f64>,
    /// Whether the model may, must or must not call tools.
    pub tool_choice: ToolChoice,
    /// The amount of reasoning before an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// JSON Schema of the answer. A provider that supports schemas applies it to the answer, not to tool calls. Other providers
    /// ignore it, so the prompt must also describe the answer, and the caller must check the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Value>,
}

/// The amount of reasoning before an answer. A client sends the nearest level that the provider's API has. The provider
/// can refuse a level that the model does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    /// No reasoning, if the model can answer without it.
    None,
    /// As little reasoning as possible.
    Minimal,
    /// Little reasoning.
    Low,
    /// Moderate reasoning.
    Medium,
    /// Much reasoning.
    High,
}

impl ReasoningEffort {
    /// Returns the name of the level in configuration files and in requests to OpenAI's APIs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Whether the model may, must or must not call tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call a tool.
    Required,
}
