//! The chat-completions API and the differences between its providers.

use serde_json::{Value, json};

use super::history::OpenAiHistory;
use super::max_tokens::MaxTokensField;
use super::reader::ChunkReader;
use super::request::WireRequest;
use crate::client::{ApiProfile, CallIdForm, ClientBuilder, Dialect};
use crate::http::{KeyHeader, ResponseMode};
use crate::schema::without_added_nulls;
use toolwit_agent::model::{ChatRequest, DeclaredTool};
use toolwit_core::ToolCall;

/// The chat-completions API.
#[derive(Clone, Debug, Default)]
pub struct ChatCompletions {
    max_tokens_field: Option<MaxTokensField>,
    provider: ChatProvider,
}

/// The differences between providers of the API, by their hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ChatProvider {
    /// OpenAI itself, and Azure.
    OpenAi,
    /// Mistral: it refuses unknown fields, and ids of calls have nine characters.
    Mistral,
    /// Another provider or server.
    #[default]
    Other,
}

impl ClientBuilder<ChatCompletions> {
    /// Sets the field that limits the tokens of a response. The default is `max_completion_tokens` for OpenAI's own API and
    /// `max_tokens` for others.
    pub fn max_tokens_field(mut self, field: MaxTokensField) -> Self {
        self.dialect.max_tokens_field = Some(field);
        self
    }
}

impl ChatProvider {
    fn of(host: &str) -> Self {
        match host {
            "api.openai.com" => Self::OpenAi,
            "api.mistral.ai" => Self::Mistral,
            host if host.ends_with(".openai.azure.com") => Self::OpenAi,
            _ => Self::Other,
        }
    }

    /// Returns whether the provider knows strict schemas. Others may refuse the field.
    pub(super) fn is_strict(self) -> bool {
        self == Self::OpenAi
    }

    pub(super) fn call_ids(self) -> CallIdForm {
        match self {
            Self::Mistral => CallIdForm::NineCharacters,
            Self::OpenAi | Self::Other => CallIdForm::Any,
        }
    }

    /// Returns the options of a stream. Without them, some providers do not send the usage.
    pub(super) fn stream_options(self, mode: ResponseMode) -> Option<Value> {
        let is_sent = mode == ResponseMode::Streaming && self != Self::Mistral;
        is_sent.then(|| json!({"include_usage": true}))
    }
}

impl Dialect for ChatCompletions {
    const PROFILE: ApiProfile = ApiProfile {
        name: "chat",
        base_url: "https://api.openai.com/v1",
        base_url_variables: &["OPENAI_BASE_URL"],
        key_variables: &["OPENAI_API_KEY"],
        key_header: KeyHeader::Bearer,
        headers: &[],
    };

    type Reader = ChunkReader;

    fn settled(mut self, host: &str, _model: &str) -> Self {
        self.provider = ChatProvider::of(host);
        let default_field = match self.provider {
            ChatProvider::OpenAi => MaxTokensField::MaxCompletionTokens,
            ChatProvider::Mistral | ChatProvider::Other => MaxTokensField::MaxTokens,
        };
        self.max_tokens_field.get_or_insert(default_field);
        self
    }

    fn path(_model: &str, _mode: ResponseMode) -> (String, Option<(&'static str, &'static str)>) {
        ("chat/completions".to_owned(), None)
    }

    fn body(&self, model: &str, request: ChatRequest<'_>, issuer: &str, mode: ResponseMode) -> Value {
        let field = self.max_tokens_field.unwrap_or(MaxTokensField::MaxTokens);
        let messages = OpenAiHistory::for_provider(request.messages, issuer, self.provider.call_ids());
        let wire = WireRequest::new(model, request, messages, self.provider, mode).with_max_tokens_field(field);
        serde_json::to_value(wire).unwrap_or_default()
    }

    fn reader(&self) -> ChunkReader {
        ChunkReader::default()
    }

    fn restore(&self, call: &mut ToolCall, tool: &DeclaredTool) {
        if !self.provider.is_strict() {
            return;
        }
        if let Some(arguments) = without_added_nulls(&tool.definition.input_schema, &call.arguments) {
            call.arguments = arguments;
        }
    }
}
