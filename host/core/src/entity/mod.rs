//! Live objects whose methods become tools when a call returns them.

mod available_tools;
mod entity_methods;
mod native_entity;
mod output;
mod tool_provider;

pub use available_tools::{AVAILABLE_TOOLS, name_available_tools};
pub use entity_methods::EntityMethods;
pub use native_entity::NativeEntity;
pub use output::serialize_entity;
pub use tool_provider::{Rebinding, RejectedProvider, ToolProvider, entity_tool_names};

pub(crate) use output::serialize_output;
