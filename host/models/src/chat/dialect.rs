//! The chat-completions API and the differences between its providers.

use serde_json::{Value, json};

use super::answer_format::AnswerFormat;
use super::history::{OpenAiHistory, ResultPictures};
use super::max_tokens::MaxTokensField;
use super::reader::ChunkReader;
use super::request::WireRequest;
use crate::client::{ApiProfile, CallIdForm, ClientBuilder, Dialect, is_openai_reasoning_model};
use crate::http::{KeyHeader, ResponseMode};
use crate::schema::without_added_nulls;
use toolwit_agent::model::{ChatRequest, DeclaredTool};
use toolwit_core::ToolCall;

/// Parts of the names of models that only their providers run.
const HOSTED_MODELS: [&str; 5] = ["gpt-4", "chatgpt", "claude", "gemini", "grok"];

/// The chat-completions API.
#[derive(Clone, Debug, Default)]
pub struct ChatCompletions {
    max_tokens_field: Option<MaxTokensField>,
    answer_format: Option<AnswerFormat>,
    provider: ChatProvider,
}

/// A provider of the API, recognized by its host. Providers differ in the fields and ids that they accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ChatProvider {
    /// OpenAI itself, and Azure.
    OpenAi,
    /// Mistral. It refuses unknown fields, and call ids that do not have nine characters.
    Mistral,
    /// DeepSeek. It can constrain an answer to JSON, but not to a schema.
    DeepSeek,
    /// The API of Gemini that is compatible with OpenAI's.
    Gemini,
    /// A server on this machine, such as llama.cpp, vLLM or Ollama. Its model may have a small context window.
    Local,
    /// Another provider or server.
    #[default]
    Other,
}

impl ClientBuilder<ChatCompletions> {
    /// Sets the way in which the provider constrains an answer to a schema. The default follows from the host: a schema
    /// for OpenAI, Azure, Mistral, Gemini and servers on this machine, JSON for DeepSeek, the prompt for others.
    pub fn answer_format(mut self, format: AnswerFormat) -> Self {
        self.dialect.answer_format = Some(format);
        self
    }

    /// Sets the field that limits the tokens of a response. The default is `max_completion_tokens` for OpenAI and
    /// Azure, and `max_tokens` for others.
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
            "api.deepseek.com" => Self::DeepSeek,
            "localhost" | "127.0.0.1" | "::1" | "[::1]" => Self::Local,
            "generativelanguage.googleapis.com" => Self::Gemini,
            host if host.ends_with("aiplatform.googleapis.com") => Self::Gemini,
            host if host.ends_with(".openai.azure.com") => Self::OpenAi,
            _ => Self::Other,
        }
    }

    /// Returns whether the provider supports strict schemas of tools and answers. Other providers may refuse the field
    /// `strict` of a tool.
    pub(super) fn is_strict(self) -> bool {
        self == Self::OpenAi
    }

    /// Returns the form of the call ids that the provider accepts.
    pub(super) fn call_id_form(self) -> CallIdForm {
        match self {
            Self::Mistral => CallIdForm::NineCharacters,
            // OpenAI refuses longer ids, and so may every server that checks requests as OpenAI does.
            _ => CallIdForm::Short,
        }
    }

    /// Returns the place of the pictures of results. OpenAI accepts only text in results. Mistral, and the templates of many
    /// local models, do not accept a message of the user after a result. A server on this machine with the model of a provider
    /// is a gateway to that provider.
    fn result_pictures(self, model: &str) -> ResultPictures {
        let is_local_model = self == Self::Local
            && !is_openai_reasoning_model(model)
            && !HOSTED_MODELS.iter().any(|part| model.contains(part));
        if self == Self::Mistral || is_local_model {
            ResultPictures::InResult
        } else {
            ResultPictures::AfterResults
        }
    }

    /// Returns the way in which the provider constrains an answer to a schema. An unknown provider might refuse the request
    /// because of the field, so that the schema is only in the prompt.
    fn answer_format(self) -> AnswerFormat {
        match self {
            Self::OpenAi | Self::Mistral | Self::Gemini | Self::Local => AnswerFormat::Schema,
            Self::DeepSeek => AnswerFormat::Json,
            Self::Other => AnswerFormat::Prompt,
        }
    }

    /// Returns the value of `stream_options`. Without it, some providers do not send the usage of a stream. Returns
    /// `None` for complete responses, which do not need the field, and for Mistral, which refuses unknown fields.
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

    fn with_defaults_for(mut self, host: &str, _model: &str) -> Self {
        self.provider = ChatProvider::of(host);
        let default_field = match self.provider {
            ChatProvider::OpenAi => MaxTokensField::MaxCompletionTokens,
            _ => MaxTokensField::MaxTokens,
        };
        self.max_tokens_field.get_or_insert(default_field);
        self
    }

    fn path(_model: &str, _mode: ResponseMode) -> (String, Option<(&'static str, &'static str)>) {
        ("chat/completions".to_owned(), None)
    }

    fn body(&self, model: &str, request: ChatRequest<'_>, block_issuer: &str, mode: ResponseMode) -> Value {
        let max_tokens_field = self.max_tokens_field.unwrap_or(MaxTokensField::MaxTokens);
        let provider = self.provider;
        let messages = OpenAiHistory::for_provider(
            request.messages,
            block_issuer,
            provider.call_id_form(),
            provider.result_pictures(model),
        );
        let messages = if self.provider == ChatProvider::Gemini && model.contains("gemini-3") {
            messages.with_signature_placeholders()
        } else {
            messages
        };
        let answer_format = self.answer_format.unwrap_or_else(|| self.provider.answer_format());
        let response_format = request.options.answer_schema.as_ref().and_then(|schema| {
            let is_strict = self.provider.is_strict();
            answer_format.response_format(schema, is_strict)
        });
        let wire_request = WireRequest::new(model, request, messages, self.provider, mode)
            .with_max_tokens_field(max_tokens_field)
            .with_response_format(response_format);
        serde_json::to_value(wire_request).unwrap_or_default()
    }

    fn reader(&self) -> ChunkReader {
        ChunkReader::default()
    }

    fn restore_arguments(&self, call: &mut ToolCall, tool: &DeclaredTool) {
        if !self.provider.is_strict() {
            return;
        }
        if let Some(arguments) = without_added_nulls(&tool.definition.input_schema, &call.arguments) {
            call.arguments = arguments;
        }
    }

    fn restore_answer(&self, answer: &str, schema: &Value) -> Option<String> {
        let is_strict = self.provider.is_strict();
        is_strict.then(|| without_added_nulls(schema, answer)).flatten()
    }
}
