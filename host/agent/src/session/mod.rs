//! Conversations without a model.

mod no_model;
mod serial_groups;
mod tool_session;

pub use tool_session::{SessionAnswer, SessionTool, ToolSession};
