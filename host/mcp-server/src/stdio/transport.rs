//! The transport over lines of JSON.

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

/// The time limit for the answers to running requests after the end of the input.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// The further time that direct calls have after [`DRAIN_MAX`]. The protocol library gives other requests the same
/// time.
const DIRECT_DRAIN_MAX: Duration = Duration::from_secs(5);

/// The transport of the messages of one client, without the messages that the intake answers. Each message is one line.
pub(super) struct LineTransport<W> {
    pub(super) messages: mpsc::Receiver<ClientJsonRpcMessage>,
    pub(super) outgoing: Outgoing<W>,
    pub(super) running_calls: RunningCalls,
    /// Whether the input has ended.
    pub(super) has_ended: bool,
    /// Stops the intake when it is dropped.
    pub(super) intake: DropGuard,
}

impl<W> Transport<RoleServer> for LineTransport<W>
where
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let (sent, work) = send(&outgoing, item).await;
            if let Some(work) = work {
                work.run();
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let message = self.messages.recv().await;
        if message.is_none() {
            self.has_ended = true;
            // The client may still wait for the answers to requests that it piped in.
            drop(tokio::time::timeout(DRAIN_MAX, self.outgoing.unanswered.wait_until_empty()).await);
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        let drain_max = if self.has_ended {
            DIRECT_DRAIN_MAX
        } else {
            Duration::ZERO
        };
        self.intake.token().cancel();
        self.running_calls.finish(drain_max).await;
        self.outgoing.output.lock().await.flush().await
    }
}
