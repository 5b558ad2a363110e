//! The interface to a language model.

use std::sync::Arc;

use async_trait::async_trait;

use super::error::ModelError;
use super::price::Price;
use super::request::ChatRequest;
use super::response::ChatResponse;

/// A language model. Each request is one inference. The model does not run tools: the loop runs the calls of a response.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Returns the model's name, as sent to the provider.
    fn name(&self) -> &str;

    /// Performs one inference over the full history.
    ///
    /// # Errors
    /// [`ModelError`]. Clients of providers retry temporary failures before they return one.
    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError>;

    /// Returns the name of the provider for telemetry, if known. OpenTelemetry calls it `gen_ai.provider.name`.
    fn provider(&self) -> Option<&str> {
        None
    }

    /// Returns the price of the model's tokens, if known. [`DescribedModel`](super::DescribedModel) adds a price to any
    /// model.
    fn price(&self) -> Option<Price> {
        None
    }

    /// Returns the size of the largest request, in tokens, if known. A conversation without its own limit summarizes older
    /// messages when a request exceeds three quarters of this size.
    fn context_tokens(&self) -> Option<u64> {
        None
    }

    /// Returns whether the model takes pictures. If not, the text of a message says which pictures the model does not receive.
    fn accepts_pictures(&self) -> bool {
        false
    }

    /// Returns whether the provider can defer tools until the model searches for them, which
    /// [`ToolDelivery::Native`](super::ToolDelivery::Native) requires.
    fn supports_deferred_tools(&self) -> bool {
        false
    }

    /// Ends the use of the model: the program calls this method when it has sent its last request. A scripted model then checks
    /// that all of its turns were played. Other models do nothing.
    ///
    /// # Errors
    /// [`ModelError::Script`] if the script has turns that were not played.
    fn end_use(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

#[async_trait]
impl<M: ChatModel + ?Sized> ChatModel for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        (**self).chat(request).await
    }

    fn provider(&self) -> Option<&str> {
        (**self).provider()
    }

    fn price(&self) -> Option<Price> {
        (**self).price()
    }

    fn context_tokens(&self) -> Option<u64> {
        (**self).context_tokens()
    }

    fn accepts_pictures(&self) -> bool {
        (**self).accepts_pictures()
    }

    fn supports_deferred_tools(&self) -> bool {
        (**self).supports_deferred_tools()
    }

    fn end_use(&self) -> Result<(), ModelError> {
        (**self).end_use()
    }
}
