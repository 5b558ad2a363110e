//! The language-model port and its adapters.
//!
//! [`ChatModel`] is the port: one inference over a history and the declared tools. [`Scripted`] plays a script.

mod error;
mod port;
mod scripted;

pub use error::ModelError;
pub use port::{ChatModel, ChatOptions, ChatRequest, ChatResponse, DeclaredTool, FinishReason, TokenUsage, ToolChoice};
pub use scripted::{Expectation, Scripted, ShownRequest, TextMatch, Turn};
