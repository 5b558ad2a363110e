//! Requests of the messages API.

use serde_json::{Map, Value, json};

use super::history::{mark_cached, messages, system};
use super::reader::MessageReader;
use crate::client::{ApiProfile, Dialect};
use crate::http::{KeyHeader, ResponseMode};
use crate::schema::SchemaSubset;
use toolwit_agent::model::{ChatRequest, DeclaredTool, ToolChoice};

/// The limit on the tokens of a response, which the API requires, if the options set none. Every current model accepts it.
const MAX_TOKENS_DEFAULT: u32 = 8_192;

/// The Anthropic messages API.
///
/// The system prompt and the conversation so far are marked for the prompt cache. Thinking blocks with their signatures are
/// sent back.
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

    type Reader = MessageReader;

    fn settled(self, _host: &str, _model: &str) -> Self {
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
        set("max_tokens", json!(options.max_tokens.unwrap_or(MAX_TOKENS_DEFAULT)));
        // Tools come first in the provider's prompt, then the system prompt, then the messages.
        if !request.tools.is_empty() {
            set("tools", request.tools.iter().map(tool).collect());
            let choice = match options.tool_choice {
                ToolChoice::Auto => None,
                ToolChoice::None => Some("none"),
                ToolChoice::Required => Some("any"),
            };
            if let Some(kind) = choice {
                set("tool_choice", json!({"type": kind}));
            }
        }
        let mut system = system(request.messages);
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
        if let Some(temperature) = options.temperature {
            set("temperature", json!(temperature));
        }
        set("stream", json!(mode == ResponseMode::Streaming));
        Value::Object(body)
    }

    fn reader(&self) -> MessageReader {
        MessageReader::default()
    }
}

fn tool(tool: &DeclaredTool) -> Value {
    json!({
        "name": tool.name.as_str(),
        "description": tool.definition.description,
        "input_schema": SchemaSubset::ObjectRoot.of(&tool.definition.input_schema),
    })
}
