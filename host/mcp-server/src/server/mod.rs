//! The server, and the requests of a connection.

mod connection;
mod listeners;
mod mcp_server;

pub(crate) use connection::Connection;
pub use mcp_server::McpServer;
