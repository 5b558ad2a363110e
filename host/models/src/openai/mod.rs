//! The OpenAI chat-completions API, which most providers and local servers implement.

mod builder;
mod client;
mod history;
mod max_tokens;
mod reply;
mod request;

pub use builder::OpenAiBuilder;
pub use client::OpenAi;
pub use history::OpenAiHistory;
pub use max_tokens::MaxTokensField;

#[cfg(test)]
mod tests;
