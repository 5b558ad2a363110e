//! The configuration of servers: in code, in `mcp.toml`, in `toolwit.toml`, and in the files of other clients.

mod client_files;
mod endpoint;
mod mcp_config;
mod meta_rule;
mod oauth_client;
mod oauth_login;
mod oauth_table;
mod server_config;
mod tool_filter;

pub use endpoint::{HttpEndpoint, ProcessEndpoint, ServerEndpoint};
pub use mcp_config::McpConfig;
pub use meta_rule::MetaRule;
pub use oauth_client::OauthClient;
pub use oauth_login::OauthLogin;
pub use server_config::{ChangedTools, RevisionChoice, ServerConfig};
pub use tool_filter::ToolFilter;
