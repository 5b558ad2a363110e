//! All servers of a host.

use futures::future::join_all;

use super::mcp_server::McpServer;
use crate::config::McpConfig;
use crate::session::ClientOptions;
use toolwit_agent::ToolSource;
use toolwit_core::{Error, ToolContext};

/// The servers of a host, in alphabetical order of their names.
#[derive(Clone, Default)]
pub struct McpServers {
    servers: Vec<McpServer>,
}

impl McpServers {
    /// Creates the configured servers, without starting or contacting them.
    #[must_use]
    pub fn new(config: &McpConfig, options: &ClientOptions) -> Self {
        let servers = config.servers().cloned();
        Self {
            servers: servers.map(|server| McpServer::new(server, options.clone())).collect(),
        }
    }

    /// Returns the servers.
    pub fn iter(&self) -> impl Iterator<Item = &McpServer> {
        self.servers.iter()
    }

    /// Returns the server with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&McpServer> {
        self.servers.iter().find(|server| server.name() == name)
    }

    /// Returns whether there are no servers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Connects to the required servers and lists their tools.
    ///
    /// # Errors
    /// The error of the first required server that cannot be used.
    pub async fn connect_required(&self, context: &ToolContext) -> Result<(), Error> {
        let required_servers = self.servers.iter().filter(|server| server.config().is_required);
        let results = join_all(required_servers.map(|server| server.tools(context))).await;
        results.into_iter().try_for_each(|result| result.map(drop))
    }

    /// Ends all connections, and with them the processes of the servers.
    pub fn disconnect(&self) {
        self.servers.iter().for_each(McpServer::disconnect);
    }
}
