//! The server, and the requests of a connection.

mod answer_memory;
mod call_log;
mod connection;
mod content_requests;
mod deliveries;
mod listeners;
mod mcp_server;
mod task_call;

pub(crate) use connection::Connection;
pub use mcp_server::McpServer;
