//! The public interface of a conversation: building, running, resuming.

mod answer_schema;
mod build;
mod builder;
mod builder_context;
mod conversation_handle;
mod earlier_state;
mod loop_config;
mod object_tools;
mod restoration;
mod suspension;
mod tool_references;
mod unavailable_tool;
mod user_turn;
mod workflows;

pub use answer_schema::AnswerSchema;
pub use builder::{ConversationBuilder, RESERVED_TOOL_NAMES};
pub use conversation_handle::Conversation;
pub use loop_config::LoopConfig;
pub use suspension::Suspension;
pub use user_turn::{TypedOutcome, UserTurn};
