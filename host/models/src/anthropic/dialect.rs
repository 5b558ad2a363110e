//! Requests in the format of the messages API.

use serde_json::{Map, Value, json};

use super::history::{mark_cached, messages, system_blocks};
use super::reader::MessageReader;
use super::reasoning::{ReasoningFields, accepts_answer_schema};
use crate::client::{ApiProfile, Dialect, default_max_tokens};
use crate::http::{KeyHeader, ResponseMode};
use crate::schema::{SchemaSubset, closed_schema};
use toolwit_agent::model::{ChatRequest, DeclaredTool, ToolChoice, ToolDelivery};

/// The Anthropic messages API.
///
/// The system prompt and the conversation so far are marked for the prompt cache. Thinking blocks with their signatures
/// are sent back.
#[derive(Clone, Debug, Default)]
pub struct Messages(());

impl Dialect for Messages {
    const PROFILE: ApiProfile = ApiProfile {
        name: "anthropic",
        base_url: "https://api.anthropic.com",
        base_url_variables: &["ANTHROPIC_BASE_URL"],
        key_variables: &["ANTHROPIC_API_KEY"],
        key_header: KeyHeader::Named("x-api-key"),
        headers: &[("anthropic-version", "2023-06-01")],
    };

    const DEFERS_TOOLS: bool = true;

    type Reader = MessageReader;

    fn with_defaults_for(self, _host: &str, _model: &str) -> Self {
        self
    }

    fn path(_model: &str, _mode: ResponseMode) -> (String, Option<(&'static str, &'static str)>) {
        ("v1/messages".to_owned(), None)
    }

    fn body(&self, model: &str, request: ChatRequest<'_>, block_issuer: &str, mode: ResponseMode) -> Value {
        let options = request.options;
        let mut body = Map::new();
        let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
        set("model", json!(model));
        let max_tokens = options
            .max_tokens
            .unwrap_or_else(|| default_max_tokens(options.reasoning_effort));
        set("max_tokens", json!(max_tokens));
        // The fields are in the order of the provider's prompt: tools, system prompt, messages.
        if !request.tools.is_empty() {
            set("tools", tool_declarations(&request));
            let tool_choice = match options.tool_choice {
                ToolChoice::Auto => None,
                ToolChoice::None => Some("none"),
                ToolChoice::Required => Some("any"),
            };
            if let Some(tool_choice) = tool_choice {
                set("tool_choice", json!({"type": tool_choice}));
            }
        }
        let mut system = system_blocks(request.messages);
        if let Some(last_block) = system.last_mut() {
            mark_cached(last_block);
            set("system", json!(system));
        }
        // Provider blocks, such as thinking blocks, are sent back only to the provider and host that issued them.
        let mut messages = messages(request.messages, block_issuer);
        let last_block = messages
            .last_mut()
            .and_then(|message| message["content"].as_array_mut()?.last_mut());
        if let Some(last_block) = last_block {
            mark_cached(last_block);
        }
        set("messages", json!(messages));
        let reasoning = ReasoningFields::new(model, options, max_tokens);
        // With thinking, the API refuses any temperature except its default.
        if let Some(temperature) = options.temperature.filter(|_| !reasoning.has_thinking()) {
            set("temperature", json!(temperature));
        }
        if let Some(thinking) = reasoning.thinking {
            set("thinking", thinking);
        }
        let answer_schema = options.answer_schema.as_ref();
        let answer_schema = answer_schema
            .filter(|_| accepts_answer_schema(model))
            .and_then(closed_schema);
        let mut output_config = Map::new();
        if let Some(effort) = reasoning.effort {
            output_config.insert("effort".to_owned(), json!(effort));
        }
        if let Some(schema) = answer_schema {
            output_config.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
        }
        if !output_config.is_empty() {
            set("output_config", Value::Object(output_config));
        }
        set("stream", json!(mode == ResponseMode::Streaming));
        Value::Object(body)
    }

    fn reader(&self) -> MessageReader {
        MessageReader::default()
    }
}

/// Returns the tools in the format of the API.
///
/// With [`ToolDelivery::Native`], the provider delivers the tools to the model. All of them are deferred: the provider adds a
/// tool to the prompt when the model finds the tool with the provider's search tool. The search tool is not deferred.
fn tool_declarations(request: &ChatRequest<'_>) -> Value {
    // With every other delivery, the prompt contains all declared tools from the start.
    if request.delivery != ToolDelivery::Native {
        return request.tools.iter().map(tool_declaration).collect();
    }
    let search_tool = json!({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"});
    let deferred_tools = request.tools.iter().map(|declared| {
        let mut tool = tool_declaration(declared);
        tool["defer_loading"] = json!(true);
        // Only the model may call the tool. If a program that runs at the provider called it, the program could combine
        // calls and results where the host cannot see them.
        tool["allowed_callers"] = json!(["direct"]);
        tool
    });
    std::iter::once(search_tool).chain(deferred_tools).collect()
}

/// Returns a tool in the format of the API.
fn tool_declaration(tool: &DeclaredTool) -> Value {
    json!({
        "name": tool.name.as_str(),
        "description": tool.definition.description,
        "input_schema": SchemaSubset::General.convert(&tool.definition.input_schema),
    })
}
