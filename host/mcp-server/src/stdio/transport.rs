//! The transport over lines of JSON.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, GetExtensions, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex as AsyncMutex, Notify};

use super::line_reader::{Line, LineReader};
use super::message::{IncomingLine, beginning_error, parse, refusal};
use crate::pending::{PendingRequest, PendingRequests};
use toolwit::tool::AfterAnswer;

/// Maximum length of a message, in bytes. The arguments of a call are limited to less.
const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// Maximum number of requests that are not answered yet.
const PENDING_MAX: usize = 1_000;

/// Maximum memory of these requests, in bytes.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// The time that running requests have to be answered after the end of the input.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// The transport of the messages of one client, one message a line.
pub(super) struct LineTransport<R, W> {
    input: LineReader<R>,
    output: Arc<AsyncMutex<W>>,
    unanswered: Arc<UnansweredRequests>,
    /// The limits on the number and the memory of unanswered requests.
    pending: PendingRequests,
    /// Whether a request has begun the connection.
    has_begun: bool,
}

/// A request that is not answered yet.
struct UnansweredRequest {
    /// Counts the request until it is answered.
    pending: PendingRequest,
    after_answer: AfterAnswer,
}

/// The requests that are not answered yet, by their ids as JSON text.
#[derive(Default)]
struct UnansweredRequests {
    ids: Mutex<HashMap<String, UnansweredRequest>>,
    answered: Notify,
}

impl UnansweredRequests {
    fn ids(&self) -> MutexGuard<'_, HashMap<String, UnansweredRequest>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a request that needs no answer any more. Returns the work that its tool left until the answer.
    fn remove(&self, id: &RequestId) -> Option<AfterAnswer> {
        let id = serde_json::to_string(id).unwrap_or_default();
        let request = self.ids().remove(&id);
        self.answered.notify_one();
        let UnansweredRequest { pending, after_answer } = request?;
        drop(pending);
        Some(after_answer)
    }

    /// Waits until every request is answered.
    async fn wait_until_empty(&self) {
        while !self.ids().is_empty() {
            self.answered.notified().await;
        }
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> LineTransport<R, W> {
    pub(super) fn new(input: R, output: W) -> Self {
        Self {
            input: LineReader::new(input, MESSAGE_BYTES_MAX),
            output: Arc::new(AsyncMutex::new(output)),
            unanswered: Arc::default(),
            pending: PendingRequests::new(PENDING_MAX, PENDING_BYTES_MAX),
            has_begun: false,
        }
    }

    /// Checks a line, and returns the message for the server. The error is the answer to the line, if it needs one.
    fn accept(&mut self, line: &[u8]) -> Result<ClientJsonRpcMessage, Option<Value>> {
        let (mut message, request_id) = match parse(line) {
            IncomingLine::Message { message, request_id } => (*message, request_id),
            IncomingLine::Refused(answer) => return Err(Some(answer)),
            IncomingLine::Ignored => return Err(None),
        };
        if !self.has_begun {
            // The protocol library would end the connection at any other message.
            let Some(id) = &request_id else { return Err(None) };
            if let Some(error) = beginning_error(line) {
                return Err(Some(refusal(json_of(id), error.code, &error.message)));
            }
            self.has_begun = !is_ping(line);
        }
        if let Some(id) = request_id {
            let refused = |message| Err(Some(refusal(json_of(&id), ErrorCode::INVALID_REQUEST, message)));
            if self.unanswered.ids().contains_key(&id) {
                return refused("a request with this id is not answered yet");
            }
            let reserved = self.pending.reserve(0);
            let Some(reserved) = reserved.and_then(|request| self.pending.adjust(request, line)) else {
                return refused("too many requests are not answered yet; repeat it later");
            };
            let request = UnansweredRequest {
                pending: reserved,
                after_answer: AfterAnswer::new(),
            };
            if let ClientJsonRpcMessage::Request(message) = &mut message {
                message.request.extensions_mut().insert(request.after_answer.clone());
            }
            self.unanswered.ids().insert(id, request);
        }
        if let ClientJsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            // A cancelled request is not answered.
            drop(self.unanswered.remove(id));
        }
        Ok(message)
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (output, unanswered) = (self.output.clone(), self.unanswered.clone());
        async move {
            let answered = match &item {
                ServerJsonRpcMessage::Response(response) => Some(&response.id),
                ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
                _ => None,
            };
            let sent = write(&output, &item).await;
            if let Some(after_answer) = answered.and_then(|id| unanswered.remove(id)) {
                after_answer.deliver().await;
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let answer = match self.input.next().await {
                Ok(Line::Complete(line)) => match self.accept(&line) {
                    Ok(message) => return Some(message),
                    Err(answer) => answer,
                },
                Ok(Line::TooLong) => {
                    let message = format!("a message is limited to {MESSAGE_BYTES_MAX} bytes");
                    Some(refusal(Value::Null, ErrorCode::INVALID_REQUEST, &message))
                }
                Ok(Line::End) | Err(_) => {
                    // The client may still wait for the answers to requests that it piped in.
                    drop(tokio::time::timeout(DRAIN_MAX, self.unanswered.wait_until_empty()).await);
                    return None;
                }
            };
            if let Some(answer) = answer
                && write(&self.output, &answer).await.is_err()
            {
                return None;
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.lock().await.flush().await
    }
}

/// Writes a message as one line.
async fn write<W: AsyncWrite + Unpin>(output: &AsyncMutex<W>, message: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

fn json_of(id: &str) -> Value {
    serde_json::from_str(id).unwrap_or_default()
}

fn is_ping(line: &[u8]) -> bool {
    serde_json::from_slice::<Value>(line).is_ok_and(|message| message["method"] == "ping")
}
