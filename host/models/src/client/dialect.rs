//! The traits that an API of a provider implements, and its fixed properties.

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
    /// The base URL of the provider that defines the API.
    pub(crate) base_url: &'static str,
    /// The environment variables that can hold another base URL. The first one that is set counts.
    pub(crate) base_url_variables: &'static [&'static str],
    /// The environment variables that can hold the key. The first one that is set counts.
    pub(crate) key_variables: &'static [&'static str],
    pub(crate) key_header: KeyHeader,
    /// Further headers that the API requires.
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

impl ApiProfile {
    /// Returns the value of `gen_ai.provider.name` for the provider at a host: the name in OpenTelemetry's conventions, or
    /// `openrouter`, which they do not list. For an unknown host, it is the name of the provider that defines the API, as the
    /// conventions recommend.
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

    /// Whether the API can defer tools until the model searches for them. Not every model of the provider supports it.
    const DEFERS_TOOLS: bool = false;

    /// The reader of responses of this API.
    type Reader: ResponseReader;

    /// Sets the default of each setting that was not set, if the default depends on the host or the model.
    fn with_defaults_for(self, host: &str, model: &str) -> Self;

    /// Returns the path of the endpoint below the base URL, and a parameter of the query if the endpoint needs one.
    fn path(model: &str, mode: ResponseMode) -> (String, Option<(&'static str, &'static str)>);

    /// Returns the body of a request. It contains only those provider blocks of the history that `issuer` issued.
    fn body(&self, model: &str, request: ChatRequest<'_>, issuer: &str, mode: ResponseMode) -> Value;

    /// Returns the maximum number of tokens of a response, with its reasoning, for a request whose options do not set one.
    fn max_tokens(&self, _model: &str, effort: Option<ReasoningEffort>) -> u32 {
        default_max_tokens(effort)
    }

    /// Returns a reader for one response.
    fn reader(&self) -> Self::Reader;

    /// Changes the arguments of a call so that they fit the tool's own schema, if the body of the request had a converted one.
    fn restore_arguments(&self, _call: &mut ToolCall, _tool: &DeclaredTool) {}

    /// Returns an answer changed to fit `schema`, the answer schema of the options, if the body of the request had a converted
    /// one. Returns `None` if the answer needs no change.
    fn restore_answer(&self, _answer: &str, _schema: &Value) -> Option<String> {
        None
    }
}

/// The default maximum number of tokens of a response without reasoning. Current models accept it.
const MAX_TOKENS_DEFAULT: u32 = 8_192;

/// The default maximum number of tokens of a response with its reasoning.
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

/// A reader of one response of an API, which adds its content to a [`ResponseAssembly`]. It ignores unknown fields, events and
/// kinds of content.
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

    /// Adds the blocks that the reader has collected until the end of the response.
    ///
    /// # Errors
    /// A failure if the response exceeds its maximum size.
    fn finish(&mut self, _response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        Ok(())
    }
}
