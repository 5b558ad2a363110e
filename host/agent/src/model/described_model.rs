//! A wrapper that sets the price and the context size of a model.

use async_trait::async_trait;

use super::error::ModelError;
use super::port::ChatModel;
use super::price::Price;
use super::request::ChatRequest;
use super::response::ChatResponse;

/// A model with a price for its tokens and with the size of its context. Budgets on costs require a price.
pub struct DescribedModel<M> {
    model: M,
    price: Option<Price>,
    context_tokens: Option<u64>,
}

impl<M: ChatModel> DescribedModel<M> {
    /// Wraps a model. The price and the context size are those of the model until they are set.
    #[must_use]
    pub fn new(model: M) -> Self {
        Self {
            model,
            price: None,
            context_tokens: None,
        }
    }

    /// Sets the price of the model's tokens.
    #[must_use]
    pub fn with_price(mut self, price: Price) -> Self {
        self.price = Some(price);
        self
    }

    /// Sets the size of the largest request, in tokens.
    #[must_use]
    pub fn with_context_tokens(mut self, tokens: u64) -> Self {
        self.context_tokens = Some(tokens);
        self
    }
}

#[async_trait]
impl<M: ChatModel> ChatModel for DescribedModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        self.model.chat(request).await
    }

    fn provider(&self) -> Option<&str> {
        self.model.provider()
    }

    fn price(&self) -> Option<Price> {
        self.price.or_else(|| self.model.price())
    }

    fn context_tokens(&self) -> Option<u64> {
        self.context_tokens.or_else(|| self.model.context_tokens())
    }

    fn supports_deferred_tools(&self) -> bool {
        self.model.supports_deferred_tools()
    }

    fn end_use(&self) -> Result<(), ModelError> {
        self.model.end_use()
    }
}
