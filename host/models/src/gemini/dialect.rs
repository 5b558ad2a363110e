//! Requests of the Gemini API.

use serde_json::{Map, Value, json};

use super::history::{contents, system_instruction};
use super::reader::CandidateReader;
use crate::client::{ApiProfile, Dialect};
use crate::http::{KeyHeader, ResponseMode};
use crate::schema::SchemaSubset;
use toolwit_agent::model::{ChatRequest, DeclaredTool, ReasoningEffort, ToolChoice};

/// A text in the names of the models that accept a thinking level. Earlier models accept a thinking budget.
const THINKING_LEVEL_MODELS: &str = "gemini-3";

/// The Gemini API. The requests contain the thought signatures of earlier responses, which the provider requires back.
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

    fn with_defaults_for(self, _host: &str, _model: &str) -> Self {
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

    fn body(&self, model: &str, request: ChatRequest<'_>, block_issuer: &str, _mode: ResponseMode) -> Value {
        let options = request.options;
        let mut body = Map::new();
        let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
        if let Some(instruction) = system_instruction(request.messages) {
            set("systemInstruction", instruction);
        }
        if !request.tools.is_empty() {
            let declarations: Vec<_> = request.tools.iter().map(tool_declaration).collect();
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
        set("contents", json!(contents(request.messages, block_issuer, model)));
        let config = generation_config(model, request);
        if !config.is_empty() {
            set("generationConfig", Value::Object(config));
        }
        Value::Object(body)
    }

    fn reader(&self) -> CandidateReader {
        CandidateReader::default()
    }
}

/// Returns a tool in the format of the API.
fn tool_declaration(tool: &DeclaredTool) -> Value {
    json!({
        "name": tool.name.as_str(),
        "description": tool.definition.description,
        "parametersJsonSchema": SchemaSubset::Gemini.convert(&tool.definition.input_schema),
    })
}

/// Returns the options of the inference.
fn generation_config(model: &str, request: ChatRequest<'_>) -> Map<String, Value> {
    let options = request.options;
    let mut config = Map::new();
    let mut set = |key: &str, value: Value| config.insert(key.to_owned(), value);
    if let Some(tokens) = options.max_tokens {
        set("maxOutputTokens", json!(tokens));
    }
    if let Some(temperature) = options.temperature {
        set("temperature", json!(temperature));
    }
    if let Some(effort) = options.reasoning_effort {
        set("thinkingConfig", thinking_config(model, effort));
    }
    // Models before Gemini 3 refuse an answer schema together with tools.
    let accepts_schema = request.tools.is_empty() || model.contains(THINKING_LEVEL_MODELS);
    if let Some(schema) = options.answer_schema.as_ref().filter(|_| accepts_schema) {
        set("responseMimeType", json!("application/json"));
        set("responseJsonSchema", SchemaSubset::Gemini.convert_answer(schema));
    }
    config
}

/// Returns the options of thinking: a level or, for earlier models, a budget in tokens.
fn thinking_config(model: &str, effort: ReasoningEffort) -> Value {
    if model.contains(THINKING_LEVEL_MODELS) {
        let level = match effort {
            // These models cannot answer without thinking.
            ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
            ReasoningEffort::Medium | ReasoningEffort::High => "high",
        };
        return json!({"thinkingLevel": level});
    }
    let budget = match effort {
        // The smallest budget of the Pro models, which cannot answer without thinking.
        ReasoningEffort::None if model.contains("pro") => 128,
        ReasoningEffort::None => 0,
        ReasoningEffort::Minimal => 512,
        ReasoningEffort::Low => 2_048,
        ReasoningEffort::Medium => 8_192,
        ReasoningEffort::High => 24_576,
    };
    json!({"thinkingBudget": budget})
}
