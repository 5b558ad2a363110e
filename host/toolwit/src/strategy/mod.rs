//! Injection strategies that are backed by the registry: the tools of plugins, all of them or those that a search finds.

mod follower;
mod plugin_facades;
mod registry_tools;
#[cfg(test)]
mod tests;
mod tool_search;

pub use plugin_facades::facades_by_interface;
pub use registry_tools::RegistryTools;
pub use tool_search::{SEARCH_WALL_MAX, TOOL_GUIDANCE, ToolSearch};
