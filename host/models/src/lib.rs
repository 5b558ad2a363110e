//! Clients of language-model providers for the Toolwit agent loop.
//!
//! [`OpenAi`] is a client for any provider with the chat-completions API. A [`ModelSpec`] names a model (`openai:gpt-5`), and
//! [`connect`] creates its client.

mod environment;
mod http;
mod model_spec;
mod ollama;
mod openai;

pub use http::{PlainHttp, RetryPolicy, Secret};
pub use model_spec::{ModelSpec, connect};
pub use openai::{MaxTokensField, OpenAi, OpenAiBuilder, OpenAiHistory};
