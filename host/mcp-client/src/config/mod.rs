//! The configuration of servers: in code, in `mcp.toml`, in `toolwit.toml`, and in the files of other clients.

mod client_files;
mod meta_rule;
mod server_config;
mod servers_file;
mod tool_filter;

pub use meta_rule::MetaRule;
pub use server_config::{ChangedTools, HttpEndpoint, ProcessEndpoint, RevisionChoice, ServerConfig, ServerEndpoint};
pub use servers_file::McpConfig;
pub use tool_filter::ToolFilter;
