//! The client of the chat-completions API.

use async_trait::async_trait;

use super::max_tokens::MaxTokensField;
use super::reply;
use super::request::WireRequest;
use crate::http::Endpoint;
use toolwit_agent::model::{ChatModel, ChatRequest, ChatResponse, ModelError};

/// A model behind the OpenAI chat-completions API.
///
/// Each inference is one request, limited in time and bytes. It is retried if the provider is overloaded or not reachable.
/// The key is sent only to the host of the base URL, and does not appear in logs or errors. Proxies from the environment are
/// not used.
#[derive(Clone, Debug)]
pub struct OpenAi {
    model: String,
    endpoint: Endpoint,
    max_tokens_field: MaxTokensField,
}

impl OpenAi {
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
