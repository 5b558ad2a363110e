//! The client of the chat-completions API.

use async_trait::async_trait;

use super::builder::{MaxTokensField, OpenAiBuilder};
use super::reply;
use super::request::WireRequest;
use crate::environment;
use crate::http::Endpoint;
use toolwit_agent::model::{ChatModel, ChatRequest, ChatResponse, ModelError};

/// A model behind the OpenAI chat-completions API.
///
/// Each inference is one request, bounded in time and bytes, and repeated when the provider was busy or not reached. The
/// key goes to the base URL's host and nowhere else, and no log or error shows it. Proxies of the environment are not used.
#[derive(Clone, Debug)]
pub struct OpenAi {
    model: String,
    endpoint: Endpoint,
    max_tokens_field: MaxTokensField,
}

impl OpenAi {
    /// Takes the key from `OPENAI_API_KEY`, and another base URL from `OPENAI_BASE_URL` where it is set.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] as [`OpenAiBuilder::build`], and when the key is missing where one can be sent.
    pub fn from_env(model: impl AsRef<str>) -> Result<Self, ModelError> {
        OpenAiBuilder::from_variables(model.as_ref(), None, environment::variable)?.build()
    }

    /// Begins to set up a client.
    pub fn builder(model: impl Into<String>) -> OpenAiBuilder {
        OpenAiBuilder::new(model)
    }

    pub(super) fn new(model: String, endpoint: Endpoint, max_tokens_field: MaxTokensField) -> Self {
        Self {
            model,
            endpoint,
            max_tokens_field,
        }
    }
}

#[async_trait]
impl ChatModel for OpenAi {
    fn name(&self) -> &str {
        &self.model
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        let body = WireRequest::new(&self.model, request, self.max_tokens_field);
        let read = |reply: &_| reply::read(reply, request.messages);
        self.endpoint.post(&body, request.cancel, read).await
    }
}
