//! Servers as sources of tools. A server can return different tools to callers with different credentials.

mod mcp_server;
mod mcp_servers;
mod pinned_tools;
mod tools_by_caller;

pub use mcp_server::{McpServer, ServerReport};
pub use mcp_servers::McpServers;
