//! The placeholder model of a session.

use async_trait::async_trait;

use crate::model::{ChatModel, ChatRequest, ChatResponse, ModelError};

/// A model that fails every request. It takes the place of the model in a session, which has no model. An agent in a
/// session therefore needs its own model.
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
