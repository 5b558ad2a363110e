//! The traits that the module of each API implements, and the fixed properties of an API.

use std::fmt;

use serde_json::Value;

use super::model_names::reasons_by_default;
use crate::assembly::ResponseAssembly;
use crate::http::{AttemptFailure, KeyHeader, ResponseMode};
use toolwit_agent::model::{ChatRequest, DeclaredTool, ReasoningEffort};
use toolwit_core::ToolCall;

/// The fixed properties of an API.
#[derive(Clone, Copy, Debug)]
pub struct ApiProfile {
    /// The name of the API. The issuer of a provider block is this name with the host, as `API:HOST`.
    pub(crate) name: &'static str,
    /// The base URL of the provider that defines the API.
    pub(crate) base_url: &'static str,
    /// The environment variables that can hold another base URL. The first one that is set counts.
    pub(crate) base_url_variables: &'static [&'static str],
    /// The environment variables that can hold the key. The first one that is set counts.
    pub(crate) key_variables: &'static [&'static str],
    pub(crate) key_header: KeyHeader,
    /// The headers that the API requires in addition to the key header.
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

impl ApiProfile {
    /// Returns the value of the OpenTelemetry attribute `gen_ai.provider.name` for the provider at a host. The semantic
    /// conventions define the values, except `openrouter`. For an unknown host, returns the name of the provider that defines
    /// the API, as the conventions recommend.
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

/// An API of a provider. Converts requests of the agent loop to the format of the API, and creates the readers of responses.
pub trait Dialect: Clone + fmt::Debug + Default + Send + Sync + 'static {
    /// The fixed properties of the API.
    const PROFILE: ApiProfile;

    /// Whether the API can defer tools until the model searches for them. Not every model of the provider supports deferral.
    const DEFERS_TOOLS: bool = false;

    /// The reader of responses of this API.
    type Reader: ResponseReader;

    /// Returns the dialect with the defaults that depend on the host or the model. Settings that were set stay unchanged.
    fn with_defaults_for(self, host: &str, model: &str) -> Self;

    /// Returns the path of the endpoint below the base URL, and the query parameter that the endpoint needs, if any.
    fn path(model: &str, mode: ResponseMode) -> (String, Option<(&'static str, &'static str)>);

    /// Returns the body of a request. Of the provider blocks in the history, it contains only those that `block_issuer` issued:
    /// the API and the host of this client, as `API:HOST`.
    fn body(&self, model: &str, request: ChatRequest<'_>, block_issuer: &str, mode: ResponseMode) -> Value;

    /// Returns the maximum number of tokens of a response, including its reasoning, for a request whose options do not set it.
    fn max_tokens(&self, model: &str, effort: Option<ReasoningEffort>) -> u32 {
        let default_effort = reasons_by_default(model).then_some(ReasoningEffort::Medium);
        default_max_tokens(effort.or(default_effort))
    }

    /// Returns a reader for one response.
    fn reader(&self) -> Self::Reader;

    /// Changes the arguments of a call to fit the original schema of the tool, if [`body`](Self::body) converts the schema. For
    /// example, removes a `null` that only the converted schema requires.
    fn restore_arguments(&self, _call: &mut ToolCall, _tool: &DeclaredTool) {}

    /// Changes an answer to fit the original answer schema, if [`body`](Self::body) converts this schema. Returns `None` if the
    /// answer needs no change.
    fn restore_answer(&self, _answer: &str, _schema: &Value) -> Option<String> {
        None
    }
}

/// The maximum number of tokens of a response that is sent after a provider refused the default.
pub(crate) const MAX_TOKENS_REDUCED: u32 = 2_048;

/// The default maximum number of tokens of a response without reasoning. Most current models accept this number.
const MAX_TOKENS_DEFAULT: u32 = 8_192;

/// The default maximum number of tokens of a response and its reasoning.
const MAX_TOKENS_DEFAULT_REASONING: u32 = 32_768;

/// Returns the default maximum number of tokens of a response for a reasoning effort.
pub(crate) fn default_max_tokens(effort: Option<ReasoningEffort>) -> u32 {
    // `None` and `Some(ReasoningEffort::None)` both stand for a response without reasoning.
    if effort > Some(ReasoningEffort::None) {
        MAX_TOKENS_DEFAULT_REASONING
    } else {
        MAX_TOKENS_DEFAULT
    }
}

/// Whether a response is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderState {
    /// Further events may follow.
    Open,
    /// The response is complete. The rest of the body is ignored.
    Done,
}

/// Reads one response of an API and adds the content of the response to a [`ResponseAssembly`]. Ignores unknown fields, events
/// and types of content.
pub trait ResponseReader: Send {
    /// Reads an event of a stream.
    ///
    /// # Errors
    /// The failure that the event reports, or a failure if the response exceeds its maximum size.
    fn read_event(&mut self, event: &Value, response: &mut ResponseAssembly<'_>)
    -> Result<ReaderState, AttemptFailure>;

    /// Reads a complete response.
    ///
    /// # Errors
    /// The failure that the document reports, or a failure if it is not a response of this API or exceeds its maximum size.
    fn read_document(&mut self, document: &Value, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure>;

    /// Adds the provider blocks that the reader collected while it read the response.
    ///
    /// # Errors
    /// A failure if the response exceeds its maximum size.
    fn finish(&mut self, _response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        Ok(())
    }
}
