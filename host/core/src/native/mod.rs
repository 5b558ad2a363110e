//! Tools written in Rust.

mod blocking;
mod facade_object;
mod native_tool;
mod tool_method;
mod tool_object;

pub use blocking::run_blocking;
pub use facade_object::{FacadeContent, FacadeField, FacadeObject, FacadeOutline, FacadeOwner, NoFacadeContent};
pub use native_tool::{NativeTool, NoArguments};
pub use tool_method::ToolMethod;
pub use tool_object::{ToolMethods, ToolObject};

pub(crate) use native_tool::schema_of;

#[cfg(test)]
mod tests;
