//! The output of messages to the client.

use std::io;
use std::sync::Arc;

use rmcp::model::ServerJsonRpcMessage;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

use super::unanswered_requests::UnansweredRequests;
use toolwit::tool::DeferredWork;

/// The output to the client, and the client's unanswered requests. Clones share both.
pub(super) struct Outgoing<W> {
    pub(super) output: Arc<Mutex<W>>,
    pub(super) unanswered: Arc<UnansweredRequests>,
}

impl<W> Outgoing<W> {
    pub(super) fn new(output: W) -> Self {
        Self {
            output: Arc::new(Mutex::new(output)),
            unanswered: Arc::default(),
        }
    }
}

impl<W> Clone for Outgoing<W> {
    fn clone(&self) -> Self {
        Self {
            output: self.output.clone(),
            unanswered: self.unanswered.clone(),
        }
    }
}

/// Sends a message. If the message is an answer, removes its request from the unanswered requests, and also returns the
/// work that the call deferred.
pub(super) async fn send<W: AsyncWrite + Unpin>(
    outgoing: &Outgoing<W>,
    message: ServerJsonRpcMessage,
) -> (io::Result<()>, Option<DeferredWork>) {
    let answered_id = match &message {
        ServerJsonRpcMessage::Response(response) => Some(&response.id),
        ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    };
    let result = write(&outgoing.output, &message).await;
    (result, answered_id.and_then(|id| outgoing.unanswered.remove(id)))
}

/// Writes a message as one line.
pub(super) async fn write<W: AsyncWrite + Unpin>(output: &Mutex<W>, message: &impl serde::Serialize) -> io::Result<()> {
    let mut output = output.lock().await;
    // The text is created only now, so that the texts of waiting messages take no memory.
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    output.write_all(&line).await?;
    output.flush().await
}
