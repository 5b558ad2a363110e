//! The API of a provider, as far as it differs from others.

use std::fmt;

use serde_json::Value;

use crate::assembly::ResponseAssembly;
use crate::http::{AttemptFailure, KeyHeader, ResponseMode};
use toolwit_agent::model::{ChatRequest, DeclaredTool, ReasoningEffort};
use toolwit_core::ToolCall;

/// The fixed properties of an API.
#[derive(Clone, Copy, Debug)]
pub struct ApiProfile {
    /// The name of the API, which is a part of the issuer of provider blocks.
    pub(crate) name: &'static str,
    /// The base URL of the provider itself.
    pub(crate) base_url: &'static str,
    /// The environment variables that can have another base URL.
    pub(crate) base_url_variables: &'static [&'static str],
    /// The environment variables that can have the key.
    pub(crate) key_variables: &'static [&'static str],
    pub(crate) key_header: KeyHeader,
    /// Further headers that the API requires.
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

impl ApiProfile {
    /// Returns the name that OpenTelemetry's conventions give the provider at a host. For an unknown host, it is the name of
    /// the API's own provider, as the conventions recommend.
    pub(crate) fn telemetry_name(&self, host: &str) -> &'static str {
        match (host, self.name) {
            ("api.mistral.ai", _) => "mistral_ai",
            ("api.deepseek.com", _) => "deepseek",
            ("api.groq.com", _) => "groq",
            ("openrouter.ai", _) => "openrouter",
            (host, _) if host.ends_with(".openai.azure.com") => "azure.ai.openai",
            (_, "anthropic") => "anthropic",
            (_, "gemini") => "gcp.gemini",
            _ => "openai",
        }
    }
}

/// An API of a provider: converts requests of the agent loop to its format, and its responses back.
pub trait Dialect: Clone + fmt::Debug + Default + Send + Sync + 'static {
    /// The fixed properties of the API.
    const PROFILE: ApiProfile;

    /// Whether the provider can defer tools until the model searches for them. The provider decides for which models.
    const DEFERS_TOOLS: bool = false;

    /// Reads responses of this API.
    type Reader: ResponseReader;

    /// Sets the default of each setting that was not set, if the default depends on the host or the model.
    fn with_defaults_for(self, host: &str, model: &str) -> Self;

    /// Returns the path of the endpoint, and the parameter of its query, if there is one.
    fn path(model: &str, mode: ResponseMode) -> (String, Option<(&'static str, &'static str)>);

    /// Returns the body of a request. It contains only those provider blocks of the history that `issuer` issued.
    fn body(&self, model: &str, request: ChatRequest<'_>, issuer: &str, mode: ResponseMode) -> Value;

    /// Returns the maximum number of tokens of a response for options that set none. It includes the reasoning.
    fn max_tokens(&self, _model: &str, effort: Option<ReasoningEffort>) -> u32 {
        default_max_tokens(effort)
    }

    /// Returns a reader for one response.
    fn reader(&self) -> Self::Reader;

    /// Changes the arguments of a call from the schema that was sent to the tool's own schema.
    fn restore_arguments(&self, _call: &mut ToolCall, _tool: &DeclaredTool) {}

    /// Changes an answer from the schema that was sent to the schema of the options. `None` if it is unchanged.
    fn restore_answer(&self, _answer: &str, _schema: &Value) -> Option<String> {
        None
    }
}

/// The maximum number of tokens of a response without reasoning. Every current model accepts it.
const MAX_TOKENS_DEFAULT: u32 = 8_192;

/// The maximum number of tokens of a response with reasoning, including the reasoning.
const MAX_TOKENS_REASONING: u32 = 32_768;

/// Returns the default maximum number of tokens of a response for a level of reasoning.
pub(crate) fn default_max_tokens(effort: Option<ReasoningEffort>) -> u32 {
    if effort > Some(ReasoningEffort::None) {
        MAX_TOKENS_REASONING
    } else {
        MAX_TOKENS_DEFAULT
    }
}

/// Whether a response continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderState {
    /// Further events may follow.
    Open,
    /// The response is complete. The rest of the body is ignored.
    Done,
}

/// Reads one response into its assembly. Unknown fields, events and kinds of content are ignored.
pub trait ResponseReader: Send {
    /// Reads an event of a stream.
    ///
    /// # Errors
    /// The failure that the event reports.
    fn read_event(&mut self, event: &Value, response: &mut ResponseAssembly<'_>)
    -> Result<ReaderState, AttemptFailure>;

    /// Reads a complete response.
    ///
    /// # Errors
    /// The failure that the response reports, or a failure if the document is not a response of this API.
    fn read_document(&mut self, document: &Value, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure>;

    /// Adds the blocks that the reader has collected until the end of the response.
    ///
    /// # Errors
    /// The failure of a response that exceeds its maximum size.
    fn finish(&mut self, _response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        Ok(())
    }
}
