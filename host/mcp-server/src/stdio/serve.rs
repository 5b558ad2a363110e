//! Serves a client over standard input and output, or over two other streams.

use std::sync::{Arc, OnceLock};

use rmcp::service::{Peer, ServerInitializeError, serve_server_with_ct};
use rmcp::{RoleServer, ServerHandler};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::intake::Intake;
use super::standard_streams::standard_output;
use super::stdin_thread::start_stdin_thread;
use super::transport::LineTransport;
use toolwit::{Error, ErrorKind, Phase};

/// Serves a client over standard input and output, until the input ends or `cancel` is cancelled.
///
/// # Errors
/// If the thread for standard input cannot be started, the connection fails before it has begun, or the task that
/// serves the connection panics.
pub(crate) async fn serve(connection: impl ServerHandler, cancel: CancellationToken) -> Result<(), Error> {
    let (connection, peer) = (Arc::new(connection), Arc::new(OnceLock::new()));
    let (intake, transport) = Intake::with_transport(connection.clone(), peer.clone(), standard_output());
    start_stdin_thread(|input| intake.read(input)).map_err(connection_error)?;
    serve_transport(connection, transport, &peer, cancel).await
}

/// Serves a client over two streams; see [`serve`].
pub(crate) async fn serve_streams<R, W>(
    connection: impl ServerHandler,
    input: R,
    output: W,
    cancel: CancellationToken,
) -> Result<(), Error>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (connection, peer) = (Arc::new(connection), Arc::new(OnceLock::new()));
    let (intake, transport) = Intake::with_transport(connection.clone(), peer.clone(), output);
    // The transport stops this task at the end of the connection.
    tokio::spawn(intake.read(input));
    serve_transport(connection, transport, &peer, cancel).await
}

/// Serves the client of a transport. Sets `peer` when the connection has begun.
async fn serve_transport<W>(
    connection: Arc<impl ServerHandler>,
    transport: LineTransport<W>,
    peer: &OnceLock<Peer<RoleServer>>,
    cancel: CancellationToken,
) -> Result<(), Error>
where
    W: AsyncWrite + Unpin + Send + 'static,
{
    let running = match serve_server_with_ct(connection, transport, cancel).await {
        Ok(running) => running,
        // The input ended, or the server was stopped, before the client had begun the connection.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(connection_error(error)),
    };
    peer.get_or_init(|| running.peer().clone());
    match running.waiting().await {
        Ok(_) => Ok(()),
        Err(error) => Err(connection_error(error)),
    }
}

fn connection_error(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    let message = format!("the connection to the client failed: {error}");
    Error::new(ErrorKind::Io, Phase::Execute, message).with_source(error)
}
