//! The interface to language models, a scripted model, model selection and prices.
//!
//! [`ChatModel`] is the interface: one inference over a history and the declared tools. [`ScriptedModel`] plays a
//! script, for tests and demonstrations. [`Models`] chooses one of the models of an application. A [`Price`] converts token
//! usage to money, and a [`ModelTable`] has the prices and context sizes of models by name.

mod choice;
mod delta;
mod described_model;
mod error;
mod model_table;
mod port;
mod price;
mod request;
mod response;
mod scripted;

pub use choice::{ModelChoice, ModelTask, Models};
pub use delta::ChatDelta;
pub use described_model::DescribedModel;
pub use error::ModelError;
pub use model_table::ModelTable;
pub use port::ChatModel;
pub use price::{Cost, Price};
pub use request::{ChatOptions, ChatRequest, DeclaredTool, ReasoningEffort, ToolChoice, ToolDelivery};
pub use response::{ChatResponse, FinishReason, TokenUsage};
pub use scripted::{Expectation, RecordedRequest, ScriptedModel, ScriptedTurn, TextMatch};
