//! The tools, resources and prompts of a server, as tools.

mod content;
mod errors;
mod handles;
mod mcp_tool;
mod meta;
mod page;
mod prompt_tools;
mod resource_tools;

pub(crate) use handles::UsableTools;
pub(crate) use mcp_tool::McpTool;
pub(crate) use prompt_tools::prompt_tools;
pub(crate) use resource_tools::resource_tools;
