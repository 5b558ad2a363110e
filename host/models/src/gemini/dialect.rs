//! Requests of the Gemini API.

use serde_json::{Map, Value, json};

use super::history::{contents, system_instruction};
use super::reader::CandidateReader;
use crate::client::{ApiProfile, Dialect};
use crate::http::{KeyHeader, ResponseMode};
use crate::schema::SchemaSubset;
use toolwit_agent::model::{ChatRequest, DeclaredTool, ToolChoice};

/// The Gemini API. Thought signatures are sent back.
#[derive(Clone, Debug, Default)]
pub struct GenerateContent(());

impl Dialect for GenerateContent {
    const PROFILE: ApiProfile = ApiProfile {
        name: "gemini",
        base_url: "https://generativelanguage.googleapis.com",
        base_url_variables: &["GEMINI_BASE_URL"],
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        key_header: KeyHeader::Named("x-goog-api-key"),
        headers: &[],
    };

    type Reader = CandidateReader;

    fn settled(self, _host: &str, _model: &str) -> Self {
        self
    }

    fn path(model: &str, mode: ResponseMode) -> (String, Option<(&'static str, &'static str)>) {
        let model = if model.contains('/') {
            model.to_owned()
        } else {
            format!("models/{model}")
        };
        match mode {
            ResponseMode::Streaming => (format!("v1beta/{model}:streamGenerateContent"), Some(("alt", "sse"))),
            ResponseMode::Complete => (format!("v1beta/{model}:generateContent"), None),
        }
    }

    fn body(&self, model: &str, request: ChatRequest<'_>, issuer: &str, _mode: ResponseMode) -> Value {
        let options = request.options;
        let mut body = Map::new();
        let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
        if let Some(instruction) = system_instruction(request.messages) {
            set("systemInstruction", instruction);
        }
        if !request.tools.is_empty() {
            let declarations: Vec<_> = request.tools.iter().map(declaration).collect();
            set("tools", json!([{"functionDeclarations": declarations}]));
            let mode = match options.tool_choice {
                ToolChoice::Auto => None,
                ToolChoice::None => Some("NONE"),
                ToolChoice::Required => Some("ANY"),
            };
            if let Some(mode) = mode {
                set("toolConfig", json!({"functionCallingConfig": {"mode": mode}}));
            }
        }
        set("contents", json!(contents(request.messages, issuer, model)));
        let mut config = Map::new();
        if let Some(tokens) = options.max_tokens {
            config.insert("maxOutputTokens".to_owned(), json!(tokens));
        }
        if let Some(temperature) = options.temperature {
            config.insert("temperature".to_owned(), json!(temperature));
        }
        if !config.is_empty() {
            set("generationConfig", Value::Object(config));
        }
        Value::Object(body)
    }

    fn reader(&self) -> CandidateReader {
        CandidateReader::default()
    }
}

fn declaration(tool: &DeclaredTool) -> Value {
    json!({
        "name": tool.name.as_str(),
        "description": tool.definition.description,
        "parametersJsonSchema": SchemaSubset::Gemini.of(&tool.definition.input_schema),
    })
}
