//! Injection strategies that offer the tools of a registry and of sources to a conversation: all tools at once, or
//! those that a search finds.
//!
//! [`Toolwit::conversation`](crate::Toolwit::conversation) selects the strategies by the [`Exposure`](crate::Exposure) of
//! the host.

mod guidance;
mod plugin_facades;
mod plugin_updates;
mod registry_tools;
mod registry_view;
mod source_ids;
mod starting_sources;
#[cfg(test)]
mod tests;
mod tool_search;
mod tool_sources;

pub use guidance::{PLUGIN_GUIDANCE, TOOL_GUIDANCE};
pub use plugin_facades::facades_by_interface;
pub(crate) use plugin_updates::PluginUpdates;
pub use registry_tools::RegistryTools;
pub(crate) use starting_sources::StartingSources;
pub use tool_search::{ToolSearch, search_tools_definition};
pub use tool_sources::ToolSources;
