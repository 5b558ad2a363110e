//! The port to a language model, and the scripted model that tests and the demo use.
//!
//! [`ChatModel`] is the port: one inference over a history and the declared tools. [`ScriptedModel`] plays a script. [`Models`] holds
//! the models of an application, and a [`Price`] converts tokens to money.

mod choice;
mod error;
mod port;
mod price;
mod scripted;

pub use choice::{ModelChoice, ModelTask, Models};
pub use error::ModelError;
pub use port::{
    ChatModel, ChatOptions, ChatRequest, ChatResponse, DeclaredTool, Delivery, FinishReason, TokenUsage, ToolChoice,
};
pub use price::{Cost, Price, PricedModel};
pub use scripted::{Expectation, RecordedRequest, ScriptedModel, ScriptedTurn, TextMatch};
