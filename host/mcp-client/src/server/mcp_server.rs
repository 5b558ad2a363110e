//! One server as a source of tools.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::Serialize;

use super::tools_by_caller::CallerTable;
use crate::config::ServerConfig;
use crate::session::{ClientOptions, Listing, ServerSession, SessionPool};
use crate::tool::{McpTool, prompt_tools, resource_tools};
use toolwit_agent::ToolSource;
use toolwit_core::{Error, Tool, ToolContext, ToolId};

/// The reason why a tool is withheld if its definition differs from the pinned definition.
const CHANGED_REASON: &str = "its definition has changed since it was first listed";
/// The reason why a new tool is withheld if too many tools are pinned.
const SURPLUS_REASON: &str = "the server listed too many other tools before it";

/// A server of the Model Context Protocol, as a source of tools. Clones share its connections.
///
/// The server is started or contacted at the first use. The first use passes the caller's context, which can contain a
/// token. The ids of the server's tools have the form `mcp:SERVER#tool`. A tool of a plugin cannot have such an id. The ids
/// of the tools that read the server's resources and prompts begin with `mcp:SERVER/`.
///
/// ```no_run
/// use toolwit_agent::SourceTools;
/// use toolwit_core::ToolContext;
/// use toolwit_mcp_client::{ClientOptions, McpServer, ServerConfig};
///
/// # async fn example() -> Result<(), toolwit_core::Error> {
/// let config = ServerConfig::process("everything", "mcp-server-everything")?;
/// let server = McpServer::new(config, ClientOptions::default());
/// let tools = SourceTools::load(&server, &ToolContext::new()).await?;
/// let echo = tools.required_tool_by_name_or_id("echo")?;
/// # let _ = echo;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct McpServer {
    shared: Arc<SharedServer>,
}

/// The data that the clones of an [`McpServer`] share.
struct SharedServer {
    pool: Arc<SessionPool>,
    /// The tools of each caller.
    callers: Mutex<CallerTable>,
    /// The tools that list and read resources and prompts. `None` before they are first needed.
    resource_and_prompt_tools: Mutex<Option<Vec<Arc<dyn Tool>>>>,
}

/// The protocol revision and the tools of a server that was contacted.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ServerReport {
    /// The revision of the protocol.
    pub revision: String,
    /// The number of listed tools that can be used.
    pub tools: usize,
    /// The names of the listed tools that cannot be used, each with the reason. Two kinds of entries are not tools:
    /// `handle NAME` is a configured handle without entities, and `all others` stands for tools that were not read.
    pub withheld: Vec<(String, String)>,
}

impl McpServer {
    /// Creates a source of the tools of a server.
    #[must_use]
    pub fn new(config: ServerConfig, options: ClientOptions) -> Self {
        Self {
            shared: Arc::new(SharedServer {
                pool: Arc::new(SessionPool::new(config, options)),
                callers: Mutex::default(),
                resource_and_prompt_tools: Mutex::default(),
            }),
        }
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &ServerConfig {
        &self.shared.pool.config
    }

    /// Connects to the server, lists its tools, and reports them. Reuses an existing connection and a current list.
    ///
    /// # Errors
    /// If the server cannot be used.
    pub async fn report(&self, context: &ToolContext) -> Result<ServerReport, Error> {
        let session = self.shared.pool.session_of(context);
        let connection = session.connection(context).await?;
        let listing = session.listing(context).await?;
        let tools = self.admit_tools(context, &session, &listing).len();
        let mut withheld: Vec<_> = listing
            .withheld
            .iter()
            .map(|tool| (tool.name.clone(), tool.reason.clone()))
            .collect();
        if let Some(caller) = self.callers().get(&self.shared.pool.caller_digest(context)) {
            let changed = caller
                .pinned_tools
                .changed_names()
                .iter()
                .map(|name| (name, CHANGED_REASON));
            let surplus = caller
                .pinned_tools
                .surplus_names()
                .iter()
                .map(|name| (name, SURPLUS_REASON));
            withheld.extend(
                changed
                    .chain(surplus)
                    .map(|(name, reason)| (name.clone(), reason.to_owned())),
            );
        }
        Ok(ServerReport {
            revision: connection.revision().to_owned(),
            tools,
            withheld,
        })
    }

    /// Returns the names of the tools that are withheld from this caller because their definitions have changed.
    #[must_use]
    pub fn changed_tools(&self, context: &ToolContext) -> Vec<String> {
        let mut callers = self.callers();
        let caller = callers.get(&self.shared.pool.caller_digest(context));
        caller
            .map(|caller| caller.pinned_tools.changed_names().to_vec())
            .unwrap_or_default()
    }

    /// Accepts the changed definitions of tools for this caller, who can use these tools from the next turn on. If tools are
    /// withheld because the server listed too many, the pins of tools that the server no longer lists are removed, so that
    /// new tools can be used.
    pub fn accept_changes(&self, context: &ToolContext) {
        if let Some(caller) = self.callers().get(&self.shared.pool.caller_digest(context)) {
            caller.pinned_tools.accept_changes();
        }
    }

    /// Ends all connections, and with them the processes of the server. The next use connects again. The pinned
    /// definitions are kept.
    pub fn disconnect(&self) {
        self.shared.pool.disconnect();
    }

    /// Pins the new tools of a list, unless the configuration follows changes. Returns the tools that the caller can use.
    fn admit_tools(
        &self,
        context: &ToolContext,
        session: &Arc<ServerSession>,
        listing: &Listing,
    ) -> Vec<Arc<dyn Tool>> {
        let mut callers = self.callers();
        let caller = callers.record_session(&self.shared.pool.caller_digest(context), session);
        let usable_tools = caller.usable_tools.clone();
        let create = |listed: &_| {
            let tool = McpTool::new(self.shared.pool.clone(), listed, usable_tools.clone());
            Arc::new(tool) as Arc<dyn Tool>
        };
        let tools = caller.pinned_tools.admit(listing, self.config().changed_tools, create);
        usable_tools.set(&tools);
        tools
    }

    /// Returns the tools that list and read resources and prompts, if the configuration enables them.
    fn resource_and_prompt_tools(&self) -> Result<Vec<Arc<dyn Tool>>, Error> {
        let mut cached = self
            .shared
            .resource_and_prompt_tools
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(tools) = &*cached {
            return Ok(tools.clone());
        }
        let mut tools = Vec::new();
        if self.config().has_resource_tools {
            tools.extend(resource_tools(&self.shared.pool)?);
        }
        if self.config().has_prompt_tools {
            tools.extend(prompt_tools(&self.shared.pool)?);
        }
        Ok(cached.insert(tools).clone())
    }

    fn callers(&self) -> MutexGuard<'_, CallerTable> {
        self.shared.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ToolSource for McpServer {
    fn name(&self) -> &str {
        &self.config().name
    }

    fn may_have(&self, tool: &ToolId) -> bool {
        tool.owner().strip_prefix("mcp:") == Some(self.name())
    }

    fn cached_tools(&self, context: &ToolContext) -> Option<Vec<Arc<dyn Tool>>> {
        let session = self.shared.pool.session_of(context);
        let listing = session.last_listing()?;
        let mut tools = self.admit_tools(context, &session, &listing);
        tools.extend(self.resource_and_prompt_tools().ok()?);
        Some(tools)
    }

    fn is_starting(&self, context: &ToolContext) -> bool {
        self.shared.pool.session_of(context).is_starting()
    }

    async fn tools(&self, context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        let session = self.shared.pool.session_of(context);
        let listing = session.listing(context).await?;
        let mut tools = self.admit_tools(context, &session, &listing);
        tools.extend(self.resource_and_prompt_tools()?);
        Ok(tools)
    }
}
