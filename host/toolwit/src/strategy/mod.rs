//! Injection strategies that offer the tools of a registry and of sources to a conversation: all tools at once, or
//! those that a search finds.
//!
//! [`Toolwit::conversation`](crate::Toolwit::conversation) selects one of them by its [`Exposure`](crate::Exposure).

mod followed_tools;
mod follower;
mod guidance;
mod plugin_facades;
mod registry_tools;
#[cfg(test)]
mod tests;
mod tool_search;
mod tool_sources;

pub(crate) use followed_tools::FollowedTools;
pub use guidance::{PLUGIN_GUIDANCE, TOOL_GUIDANCE};
pub use plugin_facades::facades_by_interface;
pub use registry_tools::RegistryTools;
pub use tool_search::{ToolSearch, search_tools_definition};
pub use tool_sources::ToolSources;
