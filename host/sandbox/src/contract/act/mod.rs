//! `act:tools/tool-provider`: the tools of components that were built for ACT.

mod call_tool;
mod content;
mod list_tools;
mod manifest;
mod types;

pub(crate) use call_tool::CallTool;
pub(crate) use content::tool_result;
pub(crate) use list_tools::{ListTools, listed_tools};
pub use manifest::act_manifest;
