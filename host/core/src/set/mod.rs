//! The tools and the messages of a conversation.

mod message;
mod tool_set;

pub use message::{Message, Role, ToolCall};
pub use tool_set::{AddOutcome, NamedTool, ToolLookup, ToolSet};
