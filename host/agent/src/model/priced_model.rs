//! A model with a price.

use async_trait::async_trait;

use super::error::ModelError;
use super::port::ChatModel;
use super::price::Price;
use super::request::ChatRequest;
use super::response::ChatResponse;

/// A model with a price for its tokens, which cost budgets require, and with the size of its context.
pub struct PricedModel<M> {
    model: M,
    price: Price,
    context_tokens: Option<u64>,
}

impl<M: ChatModel> PricedModel<M> {
    /// Adds a price to a model.
    #[must_use]
    pub fn new(model: M, price: Price) -> Self {
        Self {
            model,
            price,
            context_tokens: None,
        }
    }

    /// Sets the size of the largest request, in tokens.
    #[must_use]
    pub fn with_context_tokens(mut self, tokens: Option<u64>) -> Self {
        self.context_tokens = tokens;
        self
    }
}

#[async_trait]
impl<M: ChatModel> ChatModel for PricedModel<M> {
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
        Some(self.price)
    }

    fn context_tokens(&self) -> Option<u64> {
        self.context_tokens.or_else(|| self.model.context_tokens())
    }

    fn supports_deferred_tools(&self) -> bool {
        self.model.supports_deferred_tools()
    }

    fn finish(&self) -> Result<(), ModelError> {
        self.model.finish()
    }
}
