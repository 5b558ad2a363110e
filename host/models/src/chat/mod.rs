//! The OpenAI chat-completions API, which most providers and local servers implement.

mod answer_format;
mod content;
mod dialect;
mod history;
mod max_tokens;
mod reader;
mod request;
mod wire_message;

pub use answer_format::AnswerFormat;
pub use dialect::ChatCompletions;
pub use history::OpenAiHistory;
pub use max_tokens::MaxTokensField;

use crate::client::{ClientBuilder, ModelClient};

/// A model behind the OpenAI chat-completions API, or an API that is compatible with it.
pub type OpenAi = ModelClient<ChatCompletions>;

/// Builds an [`OpenAi`] client.
pub type OpenAiBuilder = ClientBuilder<ChatCompletions>;

#[cfg(test)]
mod tests;
