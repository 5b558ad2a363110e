//! The MCP server that `toolwit mcp login` and `toolwit mcp logout` use.

use crate::input::mcp::McpFlags;
use crate::input::secrets::SecretFlags;
use toolwit::mcp::{ClientOptions, ServerConfig};
use toolwit::{Error, ErrorKind, Phase};

/// The options that select the MCP server to log in to or out of.
#[derive(Debug, clap::Args)]
pub(super) struct LoginServerFlags {
    /// Name of the server
    #[arg(value_name = "SERVER")]
    name: String,
    #[command(flatten)]
    mcp: McpFlags,
    #[command(flatten)]
    secrets: SecretFlags,
}

impl LoginServerFlags {
    /// Returns the configuration of the server, and the options of the client that connects to the server.
    ///
    /// # Errors
    /// If the server is not configured, or a configuration file cannot be read.
    pub(super) fn find(&self) -> Result<(ServerConfig, ClientOptions), Error> {
        let config = self.mcp.config()?;
        let server = config.servers().find(|server| server.name == self.name).cloned();
        let server = server.ok_or_else(|| {
            let message = format!("the MCP server `{}` is not configured", self.name.escape_debug());
            let names: Vec<_> = config.names().collect();
            let hint = if names.is_empty() {
                "add it to `toolwit/mcp.toml` of your configuration directory: `[mcp.NAME]` with its `url`".to_owned()
            } else {
                format!("the servers are {}", names.join(", "))
            };
            Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(hint)
        })?;
        Ok((server, McpFlags::client_options(&self.secrets)))
    }
}
