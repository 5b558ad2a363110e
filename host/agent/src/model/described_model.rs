//! A wrapper that sets the price, the context size and the picture support of a model.

use async_trait::async_trait;

use super::error::ModelError;
use super::port::ChatModel;
use super::price::Price;
use super::request::ChatRequest;
use super::response::ChatResponse;

/// A model with a price for its tokens, with the size of its context, and with whether it takes pictures. Budgets on costs
/// require a price.
pub struct DescribedModel<M> {
    model: M,
    price: Option<Price>,
    context_tokens: Option<u64>,
    accepts_pictures: Option<bool>,
}

impl<M: ChatModel> DescribedModel<M> {
    /// Wraps a model. Its properties are those of the model until they are set.
    #[must_use]
    pub fn new(model: M) -> Self {
        Self {
            model,
            price: None,
            context_tokens: None,
            accepts_pictures: None,
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

    /// Sets whether the model takes pictures.
    #[must_use]
    pub fn with_pictures(mut self, accepts_pictures: bool) -> Self {
        self.accepts_pictures = Some(accepts_pictures);
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

    fn accepts_pictures(&self) -> bool {
        self.accepts_pictures.unwrap_or_else(|| self.model.accepts_pictures())
    }

    fn supports_deferred_tools(&self) -> bool {
        self.model.supports_deferred_tools()
    }

    fn end_use(&self) -> Result<(), ModelError> {
        self.model.end_use()
    }
}
