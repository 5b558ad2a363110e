//! The transport of the protocol library (`rmcp`) over lines of JSON.

use std::io;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use super::direct_calls::RunningCalls;
use super::outgoing::{Outgoing, send};

/// Maximum time that the transport waits for the answers to all requests after the end of the input.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// Maximum further time that the transport waits for direct calls after [`DRAIN_MAX`]. The protocol library waits as
/// long for the other requests.
const DIRECT_DRAIN_MAX: Duration = Duration::from_secs(5);

/// Exchanges messages with one client. Each message is one line. The transport does not receive messages that the
/// [`Intake`](super::intake::Intake) answers.
pub(super) struct LineTransport<W> {
    /// The messages that the intake has checked.
    pub(super) messages: mpsc::Receiver<ClientJsonRpcMessage>,
    pub(super) outgoing: Outgoing<W>,
    pub(super) running_calls: RunningCalls,
    /// Whether the input has ended.
    pub(super) has_input_ended: bool,
    /// Stops the intake when the transport is dropped.
    pub(super) intake_stop: DropGuard,
}

impl<W> Transport<RoleServer> for LineTransport<W>
where
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let (result, deferred_work) = send(&outgoing, item).await;
            if let Some(deferred_work) = deferred_work {
                deferred_work.run();
            }
            result
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let message = self.messages.recv().await;
        if message.is_none() {
            self.has_input_ended = true;
            // A client that pipes its requests in closes the input early and still waits for their answers.
            drop(tokio::time::timeout(DRAIN_MAX, self.outgoing.unanswered.wait_until_empty()).await);
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        let drain_max = if self.has_input_ended {
            DIRECT_DRAIN_MAX
        } else {
            Duration::ZERO
        };
        self.intake_stop.token().cancel();
        self.running_calls.finish(drain_max).await;
        self.outgoing.output.lock().await.flush().await
    }
}
