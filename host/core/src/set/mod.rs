//! The tools and the messages of a conversation.

mod alternation;
mod guards;
mod message;
mod name_table;
mod named_tool;
mod shared_tool_set;
mod tool_selector;
mod tool_set;

pub use alternation::{push_joined, with_alternating_roles};
pub use guards::Guards;
pub use message::{Message, ProviderBlock, Role, ToolCall};
pub use named_tool::{AddOutcome, NamedTool, ToolLookup};
pub use shared_tool_set::SharedToolSet;
pub use tool_selector::{SelectorMap, ToolSelector, tool_identities};
pub use tool_set::ToolSet;
