//! The format in which a model calls tools.

use std::sync::Arc;

use super::prompted_tools::PromptedTools;
use toolwit_agent::model::ChatModel;

/// The format in which a model calls tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolCallFormat {
    /// The format of the provider's own API.
    #[default]
    Native,
    /// JSON that the server constrains to a schema, which is built from the visible tools for each request. For local servers
    /// whose model has no template for tools. The server must support `response_format` with a schema.
    Json,
    /// Text with marks, such as `<tool_call>{…}</tool_call>`. For models that were trained to write these marks, on servers that
    /// do not convert them to calls.
    Text,
}

impl ToolCallFormat {
    /// Returns a model that calls tools in this format.
    #[must_use]
    pub fn apply(self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        match self {
            Self::Native => model,
            Self::Json => Arc::new(PromptedTools::json(model)),
            Self::Text => Arc::new(PromptedTools::text(model)),
        }
    }
}
