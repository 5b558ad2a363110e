//! The request format of the chat-completions API.

use serde::Serialize;
use serde_json::{Value, json};

use super::dialect::ChatProvider;
use super::history::OpenAiHistory;
use super::max_tokens::MaxTokensField;
use crate::http::ResponseMode;
use crate::schema::{SchemaSubset, strict_schema};
use toolwit_agent::model::{ChatRequest, DeclaredTool, ReasoningEffort, ToolChoice};

/// The body of a request.
#[derive(Serialize)]
pub(super) struct WireRequest<'a> {
    model: &'a str,
    messages: OpenAiHistory,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}

impl<'a> WireRequest<'a> {
    pub(super) fn new(
        model: &'a str,
        request: ChatRequest<'a>,
        messages: OpenAiHistory,
        provider: ChatProvider,
        mode: ResponseMode,
    ) -> Self {
        Self {
            model,
            messages,
            tools: request.tools.iter().map(|tool| function_tool(tool, provider)).collect(),
            // The API refuses this field without tools. Its default is `auto`.
            tool_choice: match request.options.tool_choice {
                _ if request.tools.is_empty() => None,
                ToolChoice::Auto => None,
                ToolChoice::None => Some("none"),
                ToolChoice::Required => Some("required"),
            },
            max_tokens: request.options.max_tokens,
            max_completion_tokens: None,
            temperature: request.options.temperature,
            reasoning_effort: request.options.reasoning_effort.map(ReasoningEffort::as_str),
            response_format: None,
            stream: mode == ResponseMode::Streaming,
            stream_options: provider.stream_options(mode),
        }
    }

    /// Sets `response_format`, which constrains the answer. `None` omits the field.
    pub(super) fn with_response_format(mut self, response_format: Option<Value>) -> Self {
        self.response_format = response_format;
        self
    }

    /// Moves the maximum number of tokens to the given field.
    pub(super) fn with_max_tokens_field(mut self, field: MaxTokensField) -> Self {
        if field == MaxTokensField::MaxCompletionTokens {
            self.max_completion_tokens = self.max_tokens.take();
        }
        self
    }
}

/// Returns a tool in the format of the API: as a function, with a strict schema if the provider supports it and
/// strict mode can express the schema.
fn function_tool(tool: &DeclaredTool, provider: ChatProvider) -> Value {
    let definition = &tool.definition;
    let strict_parameters = provider
        .is_strict()
        .then(|| strict_schema(&definition.input_schema))
        .flatten();
    let is_strict = strict_parameters.is_some();
    let parameters = strict_parameters.unwrap_or_else(|| SchemaSubset::General.convert(&definition.input_schema));
    let mut function = json!({
        "name": tool.name.as_str(),
        "description": definition.description,
        "parameters": parameters,
    });
    if is_strict {
        function["strict"] = json!(true);
    }
    json!({"type": "function", "function": function})
}
