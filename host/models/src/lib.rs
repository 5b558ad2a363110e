//! Clients of language-model providers for the Toolwit agent loop.
//!
//! [`OpenAi`] talks to any provider with the chat-completions API. A [`ModelSpec`] names a model (`openai:gpt-5`), and
//! [`connect`] creates its client.

mod environment;
mod http;
mod ollama;
mod openai;
mod select;

pub use http::{PlainHttp, RetryPolicy, Secret};
pub use openai::{MaxTokensField, OpenAi, OpenAiBuilder, OpenAiHistory};
pub use select::{ModelSpec, connect};
