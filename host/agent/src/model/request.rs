//! A request for one inference.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use toolwit_core::{Message, ToolDefinition, ToolName};

/// A request for one inference: the history, the declared tools and the options.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ChatRequest<'a> {
    /// The history, starting with the system's instructions.
    pub messages: &'a [Message],
    /// The declared tools, in a stable order.
    pub tools: &'a [DeclaredTool],
    /// Options of the inference.
    pub options: &'a ChatOptions,
    /// Cancels the request.
    pub cancel: &'a CancellationToken,
    /// Receives the text in pieces while it is produced.
    text_listener: Option<&'a (dyn Fn(&str) + Send + Sync)>,
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
            text_listener: None,
        }
    }

    /// Sets a listener that receives the text in pieces while it is produced.
    #[must_use]
    pub fn with_text_listener(mut self, listener: &'a (dyn Fn(&str) + Send + Sync)) -> Self {
        self.text_listener = Some(listener);
        self
    }

    /// Emits a piece of the text, for a model that streams. The concatenated pieces are the text of the response.
    pub fn emit_text(&self, text: &str) {
        if let Some(listener) = self.text_listener {
            listener(text);
        }
    }
}

/// The way in which tools that are injected during a conversation reach the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Injected tools are declared after the existing ones, so that the prompt before them stays cached.
    #[default]
    List,
    /// The declared tools never change. One of them, `call_tool`, calls injected tools by name, and the result that injects a
    /// tool describes it. For providers whose prompt cache is invalidated by any change of the tools.
    Gateway,
    /// The provider defers tools until the model searches for them. A conversation rejects this option if
    /// [`ChatModel::supports_deferred_tools`](super::ChatModel::supports_deferred_tools) returns `false`.
    Native,
}

/// A tool that is declared to the model.
#[derive(Clone, Debug)]
pub struct DeclaredTool {
    /// Name under which the model calls it.
    pub name: ToolName,
    /// Definition that the model receives.
    pub definition: Arc<ToolDefinition>,
}

/// Options of an inference. The provider's defaults apply to options that are not set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatOptions {
    /// Limit on the tokens of the response.
    pub max_tokens: Option<u32>,
    /// Sampling temperature, 0 to 2.
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
    /// The model must not call a tool.
    None,
    /// The model must call a tool.
    Required,
}
