//! Requests of the messages API.

use serde_json::{Map, Value, json};

use super::history::{mark_cached, messages, system_blocks};
use super::reader::MessageReader;
use super::reasoning::{Reasoning, constrains_answers};
use crate::client::{ApiProfile, Dialect, default_max_tokens};
use crate::http::{KeyHeader, ResponseMode};
use crate::schema::{SchemaSubset, closed_schema};
use toolwit_agent::model::{ChatRequest, DeclaredTool, Delivery, ToolChoice};

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

    fn body(&self, model: &str, request: ChatRequest<'_>, issuer: &str, mode: ResponseMode) -> Value {
        let options = request.options;
        let mut body = Map::new();
        let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
        set("model", json!(model));
        let max_tokens = options
            .max_tokens
            .unwrap_or_else(|| default_max_tokens(options.reasoning_effort));
        set("max_tokens", json!(max_tokens));
        // Tools come first in the provider's prompt, then the system prompt, then the messages.
        if !request.tools.is_empty() {
            set("tools", tools(&request));
            let choice = match options.tool_choice {
                ToolChoice::Auto => None,
                ToolChoice::None => Some("none"),
                ToolChoice::Required => Some("any"),
            };
            if let Some(kind) = choice {
                set("tool_choice", json!({"type": kind}));
            }
        }
        let mut system = system_blocks(request.messages);
        if let Some(last) = system.last_mut() {
            mark_cached(last);
            set("system", json!(system));
        }
        let mut messages = messages(request.messages, issuer);
        let last = messages
            .last_mut()
            .and_then(|message| message["content"].as_array_mut()?.last_mut());
        if let Some(last) = last {
            mark_cached(last);
        }
        set("messages", json!(messages));
        let reasoning = Reasoning::of(model, options, max_tokens);
        // With thinking, the API refuses any temperature except its default.
        if let Some(temperature) = options.temperature.filter(|_| !reasoning.is_thinking()) {
            set("temperature", json!(temperature));
        }
        if let Some(thinking) = reasoning.thinking {
            set("thinking", thinking);
        }
        let answer_schema = options.answer_schema.as_ref().filter(|_| constrains_answers(model));
        let answer_schema = answer_schema.and_then(closed_schema);
        let mut config = Map::new();
        if let Some(effort) = reasoning.effort {
            config.insert("effort".to_owned(), json!(effort));
        }
        if let Some(schema) = answer_schema {
            config.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
        }
        if !config.is_empty() {
            set("output_config", Value::Object(config));
        }
        set("stream", json!(mode == ResponseMode::Streaming));
        Value::Object(body)
    }

    fn reader(&self) -> MessageReader {
        MessageReader::default()
    }
}

/// Returns the tools. The model finds deferred tools with the provider's own search tool, which is never deferred.
fn tools(request: &ChatRequest<'_>) -> Value {
    if request.delivery != Delivery::Native {
        return request.tools.iter().map(tool_declaration).collect();
    }
    let search = json!({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"});
    let deferred = request.tools.iter().map(|declared| {
        let mut tool = tool_declaration(declared);
        tool["defer_loading"] = json!(true);
        // Only the model may call the tool. A program at the provider would combine calls and results where the host
        // cannot see them.
        tool["allowed_callers"] = json!(["direct"]);
        tool
    });
    std::iter::once(search).chain(deferred).collect()
}

/// Returns a tool in the format of the API.
fn tool_declaration(tool: &DeclaredTool) -> Value {
    json!({
        "name": tool.name.as_str(),
        "description": tool.definition.description,
        "input_schema": SchemaSubset::General.convert(&tool.definition.input_schema),
    })
}
