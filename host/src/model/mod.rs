//! The language-model port and its adapters.

mod port;

pub use port::{
    ChatModel, ChatOptions, ChatRequest, ChatResponse, DeclaredTool, FinishReason, ModelError, TokenUsage, ToolChoice,
};
