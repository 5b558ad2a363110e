//! Listens for connections and serves them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::auth_challenges::AuthChallenges;
use super::callers::Callers;
use super::connections::{Connections, OpenConnection};
use super::http_sessions::HttpSessions;
use super::mcp_endpoint::ANSWER_RETENTION;
use super::options::HttpOptions;
use super::origin::OriginRules;
use super::router::{MCP_PATH, Router};
use crate::server::McpServer;
use toolwit::{Error, ErrorKind, Phase};

/// Maximum time in which the headers of a request arrive.
const HEADERS_WALL_MAX: Duration = Duration::from_secs(10);

/// Maximum size of the headers of a request, in bytes.
const HEADERS_BYTES_MAX: usize = 64 << 10;

/// The time after which an unused session ends.
const SESSION_IDLE_MAX: Duration = Duration::from_secs(30 * 60);

/// Maximum time in which running requests end after the server is stopped.
const SHUTDOWN_MAX: Duration = Duration::from_secs(3);

/// An HTTP server that listens on its address. [`HttpListener::serve`] answers the requests.
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    address: SocketAddr,
    options: HttpOptions,
}

impl HttpListener {
    /// Checks the options, and listens on their address.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for options that are not allowed, such as a public address without a token.
    /// [`ErrorKind::Io`] if the address is not available.
    pub async fn bind(options: HttpOptions) -> Result<Self, Error> {
        options.check()?;
        let failed = |error: std::io::Error| {
            let message = format!("cannot listen on `{}`: {error}", options.address);
            Error::new(ErrorKind::Io, Phase::Execute, message).with_source(error)
        };
        let listener = TcpListener::bind(options.address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            options,
        })
    }

    /// Returns the address of the listener. If the port of the options is 0, the address contains the selected port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL at which the protocol is served, such as `http://127.0.0.1:8080/mcp`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{MCP_PATH}", self.address)
    }

    /// Answers requests until `cancel` is cancelled. Running requests then have three seconds to end.
    pub async fn serve(self, server: &McpServer, cancel: CancellationToken) {
        let router = Arc::new(self.router(server, &cancel));
        let open_connections = Connections::new(self.options.connections_max);
        let mut connection_tasks = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                Some(_) = connection_tasks.join_next(), if !connection_tasks.is_empty() => {}
                (stream, connection) = accept(&self.listener, &open_connections) => {
                    let (router, cancel) = (router.clone(), cancel.clone());
                    connection_tasks.spawn(async move {
                        router.metrics.connections.fetch_add(1, Ordering::Relaxed);
                        tokio::select! {
                            () = serve_connection(stream, &router, &connection, &cancel) => {}
                            () = connection.wait_until_replaced() => {}
                        }
                        router.metrics.connections.fetch_sub(1, Ordering::Relaxed);
                    });
                }
            }
        }
        drop(self.listener);
        let all_ended = async { while connection_tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_MAX, all_ended).await.is_err() {
            tracing::warn!("some requests did not end in time");
        }
    }

    fn router(&self, server: &McpServer, cancel: &CancellationToken) -> Router {
        let mut sessions = LocalSessionManager::default();
        let mut session_config = SessionConfig::default();
        session_config.keep_alive = Some(SESSION_IDLE_MAX);
        session_config.completed_cache_ttl = ANSWER_RETENTION;
        sessions.session_config = session_config;
        let sessions = Arc::new(sessions);
        // The router checks the host and the size of the body before it passes a request to this service.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_cancellation_token(cancel.child_token());
        let service = {
            let server = server.clone();
            StreamableHttpService::new(move || Ok(server.connection()), sessions.clone(), config)
        };
        let options = &self.options;
        let callers = Callers::new(options, server.local_principal());
        server.set_group_limits(callers.group_count(), options.sessions_max);
        Router {
            origin_rules: OriginRules::new(
                &options.hosts,
                &options.origins,
                self.address.ip().to_canonical().is_loopback(),
            ),
            callers,
            auth_challenges: AuthChallenges::new(options.protected_resource.as_ref(), options.required_scopes.clone()),
            sessions: HttpSessions::new(sessions, options.sessions_max),
            protected_resource: options.protected_resource.clone(),
            metrics: server.metrics().clone(),
            service,
        }
    }
}

/// Waits for a free slot, and accepts the next connection. Skips a connection that cannot be accepted, and one for which the
/// slot was no longer free when it arrived.
async fn accept(listener: &TcpListener, connections: &Arc<Connections>) -> (TcpStream, OpenConnection) {
    loop {
        connections.wait_for_slot().await;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                // If the process has no free file descriptors, an immediate retry would fail, too.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "the delay of small packets cannot be disabled for a connection");
        }
        if let Some(connection) = connections.open() {
            return (stream, connection);
        }
    }
}

/// Answers the requests of one connection, until it ends or the server is stopped.
async fn serve_connection(stream: TcpStream, router: &Router, connection: &OpenConnection, cancel: &CancellationToken) {
    let service = service_fn(async |request| Ok::<_, Infallible>(router.answer(request, connection).await));
    let http_connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WALL_MAX)
        .max_buf_size(HEADERS_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut http_connection = std::pin::pin!(http_connection);
    let outcome = tokio::select! {
        biased;
        outcome = http_connection.as_mut() => outcome,
        () = cancel.cancelled() => {
            http_connection.as_mut().graceful_shutdown();
            http_connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended with an error");
    }
}
