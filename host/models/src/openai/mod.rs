//! Models behind the OpenAI chat-completions API, which most providers and local servers speak.

mod builder;
mod client;
mod history;
mod reply;
mod request;

pub use builder::{MaxTokensField, OpenAiBuilder};
pub use client::OpenAi;
pub use history::OpenAiHistory;

#[cfg(test)]
mod tests;
