//! The session that callers with the same credentials share: the connection to a server, and the list of its tools.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};

use super::backoff::Backoff;
use super::client_options::ClientOptions;
use super::connection::Connection;
use super::handshake;
use super::listing::{self, Listing};
use super::request::RequestError;
use super::single_flight::SingleFlight;
use crate::config::{ServerConfig, ServerEndpoint};
use crate::failure::{login_required, too_slow, unavailable};
use toolwit_core::{Error, ErrorKind, ToolContext};

/// The maximum number of attempts to connect to a server over HTTP. The server may be restarting.
const CONNECT_ATTEMPTS_MAX: usize = 3;

/// The pause before the second attempt to connect. The pause before the third attempt is twice as long.
const RETRY_DELAY_MIN: Duration = Duration::from_millis(200);

/// A session with a server, which callers with the same credentials share. Its first use connects to the server, and so
/// does the first use after the connection has ended.
pub(crate) struct ServerSession {
    config: Arc<ServerConfig>,
    options: ClientOptions,
    state: Mutex<SessionState>,
    /// Connects for all waiting callers at once.
    connect_flight: SingleFlight<Result<Arc<Connection>, Error>>,
    /// Reads the list of tools for all waiting callers at once.
    listing_flight: SingleFlight<Result<Arc<Listing>, Error>>,
}

#[derive(Default)]
struct SessionState {
    connection: Option<Arc<Connection>>,
    /// The list of tools that was read last.
    listing: Option<Arc<Listing>>,
    backoff: Backoff,
}

impl ServerSession {
    pub(super) fn new(config: Arc<ServerConfig>, options: ClientOptions) -> Self {
        Self {
            config,
            options,
            state: Mutex::default(),
            connect_flight: SingleFlight::default(),
            listing_flight: SingleFlight::default(),
        }
    }

    /// Returns the connection. Connects first if there is no connection.
    ///
    /// # Errors
    /// If the server cannot be used. For some time after a failure, the same error is returned without contacting the
    /// server.
    pub(crate) async fn connection(self: &Arc<Self>, context: &ToolContext) -> Result<Arc<Connection>, Error> {
        if let Some(connection) = self.live_connection() {
            return Ok(connection);
        }
        self.state().backoff.check()?;
        let (session, context) = (self.clone(), context.clone());
        let server = self.config.name.clone();
        let connect = || async move { session.connect(&context).await };
        self.connect_flight
            .run(connect, move || Err(interrupted(&server)))
            .await
    }

    /// Returns the list of tools. Reads it first if it was not read yet, if it may have changed, or if the connection
    /// has ended.
    ///
    /// # Errors
    /// If the server cannot be used.
    pub(crate) async fn listing(self: &Arc<Self>, context: &ToolContext) -> Result<Arc<Listing>, Error> {
        if let Some(listing) = self.fresh_listing() {
            return Ok(listing);
        }
        let (session, context) = (self.clone(), context.clone());
        let server = self.config.name.clone();
        let read = || async move { session.read_listing(&context).await };
        self.listing_flight.run(read, move || Err(interrupted(&server))).await
    }

    /// Returns whether the server is being started or contacted, and has not listed its tools before.
    pub(crate) fn is_starting(&self) -> bool {
        let is_contacted = self.connect_flight.is_running() || self.listing_flight.is_running();
        is_contacted && self.last_listing().is_none()
    }

    /// Returns the list of tools that was read last, without contacting the server.
    pub(crate) fn last_listing(&self) -> Option<Arc<Listing>> {
        self.state().listing.clone()
    }

    /// Ends a connection that does not work, unless another connection has replaced it.
    pub(crate) fn drop_connection(&self, broken: &Arc<Connection>) {
        let mut state = self.state();
        if state
            .connection
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, broken))
        {
            state.connection = None;
        }
    }

    /// Ends the connection.
    pub(crate) fn disconnect(&self) {
        self.state().connection = None;
    }

    fn live_connection(&self) -> Option<Arc<Connection>> {
        let mut state = self.state();
        if state
            .connection
            .as_ref()
            .is_some_and(|connection| connection.is_closed())
        {
            state.connection = None;
        }
        state.connection.clone()
    }

    fn fresh_listing(&self) -> Option<Arc<Listing>> {
        let connection = self.live_connection()?;
        let listing = self.state().listing.clone();
        listing.filter(|listing| listing.is_fresh() && !connection.have_tools_changed())
    }

    async fn connect(&self, context: &ToolContext) -> Result<Arc<Connection>, Error> {
        tracing::info!(server = self.config.name, "an MCP server is contacted");
        let delays = ExponentialBuilder::new()
            .with_min_delay(RETRY_DELAY_MIN)
            .with_max_times(CONNECT_ATTEMPTS_MAX - 1);
        let is_http = matches!(self.config.endpoint, ServerEndpoint::Http(_));
        let connect = || handshake::connect(&self.config, &self.options, context);
        // A process that did not start would not start a moment later.
        let connected = connect
            .retry(delays)
            .when(|error| is_http && error.kind == ErrorKind::Io)
            .await;
        let mut state = self.state();
        match connected {
            Ok(connection) => {
                tracing::info!(
                    server = self.config.name,
                    revision = connection.revision(),
                    "an MCP server is connected"
                );
                let connection = Arc::new(connection);
                state.backoff.record_success();
                state.connection = Some(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                state.backoff.record_failure(error.clone());
                Err(error)
            }
        }
    }

    async fn read_listing(self: &Arc<Self>, context: &ToolContext) -> Result<Arc<Listing>, Error> {
        // All callers of the session use the list. With the context of one caller, its cancellation would end the
        // reading for all.
        let list_context = ToolContext::new();
        let mut is_retry = false;
        loop {
            let connection = self.connection(context).await?;
            connection.notifications.clear_tools_changed();
            match listing::list_tools(&connection, &self.config, &list_context).await {
                Ok(listing) => {
                    let listing = Arc::new(listing);
                    self.state().listing = Some(listing.clone());
                    return Ok(listing);
                }
                Err(RequestError::SessionLost | RequestError::Closed(_)) if !is_retry => {
                    self.drop_connection(&connection);
                    is_retry = true;
                }
                Err(error) => {
                    connection.notifications.mark_tools_changed();
                    let why = format!("its tools cannot be listed: {error}");
                    let redact = |error| connection.redaction().redact_error(error);
                    return Err(match error {
                        RequestError::LoginRequired(required, why) => login_required(required, &why),
                        RequestError::Timeout(_) | RequestError::Stalled(_) => {
                            redact(too_slow(&self.config.name, &why))
                        }
                        _ => redact(unavailable(&self.config.name, &why)),
                    });
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the error for the callers of a [`SingleFlight`] whose task panicked or was aborted.
fn interrupted(server: &str) -> Error {
    unavailable(server, "connecting to it, or listing its tools, was interrupted")
}
