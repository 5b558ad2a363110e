//! Servers as sources of tools.

mod caller_tools;
mod mcp_server;
mod mcp_servers;
mod pinned_tools;

pub use mcp_server::{McpServer, ServerReport};
pub use mcp_servers::McpServers;
