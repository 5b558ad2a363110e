//! The placeholder for the model in a conversation without one.

use async_trait::async_trait;

use crate::model::{ChatModel, ChatRequest, ChatResponse, ModelError};

/// A model whose every request fails. An agent in a session without a model needs a model of its own.
pub(super) struct NoModel;

#[async_trait]
impl ChatModel for NoModel {
    fn name(&self) -> &str {
        "none"
    }

    async fn chat(&self, _request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        Err(ModelError::Configuration {
            message: "the session has no model".to_owned(),
            suggestion: "give the agent a model of its own".to_owned(),
        })
    }
}
