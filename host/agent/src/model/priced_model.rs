//! A model with a price.

use async_trait::async_trait;

use super::error::ModelError;
use super::port::ChatModel;
use super::price::Price;
use super::request::ChatRequest;
use super::response::ChatResponse;

/// A model with a price for its tokens, which cost budgets require.
pub struct PricedModel<M> {
    model: M,
    price: Price,
}

impl<M: ChatModel> PricedModel<M> {
    /// Adds a price to a model.
    #[must_use]
    pub fn new(model: M, price: Price) -> Self {
        Self { model, price }
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

    fn supports_deferred_tools(&self) -> bool {
        self.model.supports_deferred_tools()
    }

    fn finish(&self) -> Result<(), ModelError> {
        self.model.finish()
    }
}
