//! The language-model port and its adapters.
//!
//! [`ChatModel`] is the port: one inference over a history and the declared tools. [`Scripted`] plays a script, for tests
//! and demonstrations; `OpenAi` (feature `models`) asks any provider that speaks the chat-completions API. A [`ModelSpec`]
//! names a model, and [`connect`] makes it; [`Models`] holds those of an application. A [`Price`] makes tokens money.

mod choice;
mod error;
mod port;
mod price;
mod scripted;
mod select;

#[cfg(feature = "models")]
mod environment;
#[cfg(feature = "models")]
mod http;
#[cfg(feature = "models")]
mod ollama;
#[cfg(feature = "models")]
pub(crate) mod openai;

pub use choice::{ModelChoice, Models, Task};
pub use error::ModelError;
pub use port::{
    ChatModel, ChatOptions, ChatRequest, ChatResponse, DeclaredTool, Delivery, FinishReason, TokenUsage, ToolChoice,
};
pub use price::{Cost, Price, Priced};
pub use scripted::{Expectation, Scripted, ShownRequest, TextMatch, Turn};
pub use select::{ModelSpec, connect};

#[cfg(feature = "models")]
pub use http::{PlainHttp, RetryPolicy, Secret};
#[cfg(feature = "models")]
pub use openai::{MaxTokensField, OpenAi, OpenAiBuilder, OpenAiHistory};
