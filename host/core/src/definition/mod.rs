//! The trait of tools, their definitions and their names.

mod effect;
mod serial_group;
mod tool;
mod tool_definition;
mod tool_dialect;
mod tool_facade;
mod tool_id;
mod tool_name;

pub use effect::{CallAccess, Effect, EffectClass, EffectSource, UnknownEffectClass};
pub use serial_group::new_serial_group;
pub use tool::{Arguments, Tool, decorator_chain};
pub use tool_definition::ToolDefinition;
pub use tool_dialect::{DialectDefinition, ToolDialect};
pub use tool_facade::{RevealedTools, ToolFacade};
pub use tool_id::ToolId;
pub use tool_name::ToolName;
