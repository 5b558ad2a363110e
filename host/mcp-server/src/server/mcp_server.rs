//! A server of the Model Context Protocol.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::listeners::{Listeners, follow_content, follow_packages};
use crate::content::ServedContent;
use crate::metrics::Metrics;
use crate::principal::Principal;
use crate::stateless::StatelessRequests;
use crate::tasks::TasksByPrincipal;
use toolwit::Toolwit;

/// The name of the principal of requests without a token.
const LOCAL: &str = "local";

/// The interval between checks for expired handles, sessions and tasks.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);

/// A server that offers the tools of a host to MCP clients. Clones share all state.
#[derive(Clone)]
pub struct McpServer {
    state: Arc<ServerState>,
}

/// The state that all connections of a server share.
pub(crate) struct ServerState {
    /// The principal of requests that no token authorises.
    local_principal: Principal,
    listeners: Arc<Listeners>,
    stateless: StatelessRequests,
    tasks: TasksByPrincipal,
    metrics: Arc<Metrics>,
    content: watch::Sender<Arc<ServedContent>>,
    _background: Vec<BackgroundTask>,
}

/// A background task of the server, which announces changed tools or content, or removes expired handles, sessions and
/// tasks. Dropping this value aborts the task.
struct BackgroundTask(JoinHandle<()>);

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Removes expired handles, sessions and tasks each minute, until the server is dropped.
async fn remove_expired(server: Weak<ServerState>) {
    let mut expiry = tokio::time::interval(EXPIRY_INTERVAL);
    loop {
        expiry.tick().await;
        let Some(server) = server.upgrade() else { return };
        server.stateless.expire();
        server.tasks.expire();
    }
}

impl McpServer {
    /// Creates a server of all tools of a host.
    ///
    /// # Panics
    /// If the function is called outside of a Tokio runtime.
    #[must_use]
    pub fn new(host: Toolwit) -> Self {
        Self::for_principal(Principal::new(LOCAL, host))
    }

    /// Creates a server that treats all clients without a token as `principal`.
    ///
    /// # Panics
    /// If the function is called outside of a Tokio runtime.
    #[must_use]
    pub fn for_principal(principal: Principal) -> Self {
        let listeners = Arc::new(Listeners::default());
        let (content, changes) = watch::channel(Arc::default());
        let tools = tokio::spawn(follow_packages(principal.host().clone(), Arc::downgrade(&listeners)));
        let files = tokio::spawn(follow_content(changes, Arc::downgrade(&listeners)));
        let state = Arc::new_cyclic(|state| {
            let expiry = tokio::spawn(remove_expired(state.clone()));
            ServerState {
                local_principal: principal,
                listeners,
                stateless: StatelessRequests::default(),
                tasks: TasksByPrincipal::default(),
                metrics: Arc::default(),
                content,
                _background: [tools, files, expiry].map(BackgroundTask).into(),
            }
        });
        Self { state }
    }

    /// Offers prompts and resources to all clients, in addition to tools.
    #[must_use]
    pub fn with_content(self, content: ServedContent) -> Self {
        self.set_content(content);
        self
    }

    /// Replaces the prompts and resources. Clients are notified that the lists changed.
    pub fn set_content(&self, content: ServedContent) {
        self.state.content.send_replace(Arc::new(content));
    }

    /// Serves one client over standard input and output, until the input ends or `cancel` is cancelled.
    ///
    /// Standard output carries only messages of the protocol: no other part of the program may write to it. At the end
    /// of the input, running calls have a few seconds to finish.
    ///
    /// # Errors
    /// If the thread for standard input cannot be started, the connection fails before a client has begun a session, or
    /// the task that serves the connection panics.
    pub async fn serve_stdio(&self, cancel: CancellationToken) -> Result<(), toolwit::Error> {
        crate::stdio::serve(self.connection(), cancel).await
    }

    /// Returns the principal of requests that no token authorises.
    pub(crate) fn local_principal(&self) -> &Principal {
        &self.state.local_principal
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.state.metrics
    }

    /// Sets the number of groups of principals (tokens and token rules), and the maximum number of live sessions for
    /// stateless requests. Each group gets an equal share of the sessions.
    pub(crate) fn set_group_limits(&self, groups: usize, sessions_max: usize) {
        self.state.stateless.set_group_limits(groups, sessions_max);
    }

    /// Serves one client over two streams, such as the ends of a pipe, like [`McpServer::serve_stdio`].
    ///
    /// # Errors
    /// If the connection fails before a client has begun a session, or the task that serves the connection panics.
    pub async fn serve_streams<R, W>(
        &self,
        input: R,
        output: W,
        cancel: CancellationToken,
    ) -> Result<(), toolwit::Error>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        crate::stdio::serve_streams(self.connection(), input, output, cancel).await
    }

    /// Returns the handler of a new connection.
    pub(crate) fn connection(&self) -> Connection {
        Connection::new(self.state.clone())
    }
}

impl ServerState {
    pub(crate) fn local_principal(&self) -> &Principal {
        &self.local_principal
    }

    pub(super) fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(super) fn tasks(&self) -> &TasksByPrincipal {
        &self.tasks
    }

    pub(super) fn stateless(&self) -> &StatelessRequests {
        &self.stateless
    }

    pub(super) fn content(&self) -> Arc<ServedContent> {
        self.content.borrow().clone()
    }
}
