//! The request format of the chat-completions API.

use serde::Serialize;

use super::history::OpenAiHistory;
use super::max_tokens::MaxTokensField;
use toolwit_agent::model::{ChatRequest, DeclaredTool, ToolChoice};
use toolwit_core::{DialectDefinition, ToolDialect};

#[derive(Serialize)]
pub(super) struct WireRequest<'a> {
    model: &'a str,
    messages: OpenAiHistory,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<DialectDefinition<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
}

impl<'a> WireRequest<'a> {
    pub(super) fn new(model: &'a str, request: ChatRequest<'a>, field: MaxTokensField) -> Self {
        let options = request.options;
        let (max_tokens, max_completion_tokens) = match field {
            MaxTokensField::MaxTokens => (options.max_tokens, None),
            MaxTokensField::MaxCompletionTokens => (None, options.max_tokens),
        };
        Self {
            model,
            messages: OpenAiHistory::from(request.messages),
            tools: request.tools.iter().map(describe).collect(),
            // The API refuses a tool choice without tools. `auto` is its default.
            tool_choice: match options.tool_choice {
                _ if request.tools.is_empty() => None,
                ToolChoice::Auto => None,
                ToolChoice::None => Some("none"),
                ToolChoice::Required => Some("required"),
            },
            max_tokens,
            max_completion_tokens,
            temperature: options.temperature,
            stream: false,
        }
    }
}

fn describe(tool: &DeclaredTool) -> DialectDefinition<'_> {
    ToolDialect::OpenAiChat.describe(&tool.name, &tool.definition)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use toolwit_agent::model::ChatOptions;
    use toolwit_core::{Message, ToolDefinition, ToolId, ToolName};

    // accept: 10
    #[test]
    fn requests_contain_only_the_options_that_are_set() {
        let tool = DeclaredTool {
            name: ToolName::parse("add").unwrap(),
            definition: Arc::new(ToolDefinition::new(
                ToolId::native("add"),
                "add",
                "Adds.",
                json!({"type": "object", "properties": {"b": {}, "a": {}}}),
            )),
        };
        let (messages, cancel) = ([Message::user("hi")], CancellationToken::new());
        let wire = |tools: &[DeclaredTool], options: &ChatOptions, field| {
            serde_json::to_value(WireRequest::new(
                "m",
                ChatRequest::new(&messages, tools, options, &cancel),
                field,
            ))
            .unwrap()
        };
        let user = json!({"role": "user", "content": "hi"});
        let mut options = ChatOptions {
            tool_choice: ToolChoice::Required,
            ..ChatOptions::default()
        };
        assert_eq!(
            wire(&[], &options, MaxTokensField::MaxTokens),
            json!({"model": "m", "messages": [user], "stream": false}),
        );
        options.max_tokens = Some(9);
        options.temperature = Some(0.5);
        let full = wire(&[tool], &options, MaxTokensField::MaxCompletionTokens);
        let function = json!({"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {"b": {}, "a": {}}}});
        assert_eq!(full["tools"], json!([{"type": "function", "function": function}]));
        assert_eq!(full["tool_choice"], "required");
        assert_eq!(
            (&full["max_completion_tokens"], &full["temperature"]),
            (&json!(9), &json!(0.5))
        );
        assert!(full.get("max_tokens").is_none());
        let order: Vec<_> = full["tools"][0]["function"]["parameters"]["properties"]
            .as_object()
            .unwrap()
            .keys()
            .collect();
        assert_eq!(order, ["b", "a"], "properties keep their declared order");
    }
}
