//! The transport over lines of JSON.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, GetExtensions, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio_util::sync::CancellationToken;

use super::direct_calls::DirectCalls;
use super::line_reader::{Line, LineReader};
use super::message::{IncomingLine, beginning_error, parse, refusal};
use crate::pending::{PendingRequest, PendingRequests};
use toolwit::tool::DeferredWork;

/// Maximum length of a message, in bytes. The arguments of a call are limited to less.
const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// Maximum number of requests that are not answered yet.
const PENDING_MAX: usize = 1_000;

/// Maximum memory of these requests, in bytes.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// The time that running requests have to be answered after the end of the input.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// The time that direct calls have after that, as the protocol library gives it to other requests.
const DIRECT_DRAIN_MAX: Duration = Duration::from_secs(5);

/// The transport of the messages of one client, one message a line.
pub(super) struct LineTransport<R, W, H> {
    input: LineReader<R>,
    output: Arc<AsyncMutex<W>>,
    unanswered: Arc<UnansweredRequests>,
    /// The limits on the number and the memory of unanswered requests.
    pending: PendingRequests,
    direct_calls: DirectCalls<H>,
    /// Whether a request has begun the connection.
    has_begun: bool,
    /// Whether the input has ended.
    has_ended: bool,
}

/// A request that is not answered yet.
struct UnansweredRequest {
    /// Counts the request until it is answered.
    pending: PendingRequest,
    deferred_work: DeferredWork,
    /// Cancels the call if it is answered directly.
    cancel: CancellationToken,
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

    /// Removes a request that needs no answer any more. Returns the work that was deferred until the answer.
    fn remove(&self, id: &RequestId) -> Option<DeferredWork> {
        let id = serde_json::to_string(id).unwrap_or_default();
        let request = self.ids().remove(&id);
        self.answered.notify_one();
        let UnansweredRequest {
            pending, deferred_work, ..
        } = request?;
        drop(pending);
        Some(deferred_work)
    }

    /// Returns the token that cancels a request; `None` if the request needs no answer any more.
    fn cancel_token(&self, id: &RequestId) -> Option<CancellationToken> {
        let id = serde_json::to_string(id).unwrap_or_default();
        self.ids().get(&id).map(|request| request.cancel.clone())
    }

    /// Cancels a request, which is not answered then.
    fn cancel(&self, id: &RequestId) {
        if let Some(cancel) = self.cancel_token(id) {
            drop(self.remove(id));
            cancel.cancel();
        }
    }

    /// Waits until every request is answered.
    async fn wait_until_empty(&self) {
        while !self.ids().is_empty() {
            self.answered.notified().await;
        }
    }
}

impl<R, W, H> LineTransport<R, W, H>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
    H: ServerHandler,
{
    pub(super) fn new(input: R, output: W, direct_calls: DirectCalls<H>) -> Self {
        Self {
            input: LineReader::new(input, MESSAGE_BYTES_MAX),
            output: Arc::new(AsyncMutex::new(output)),
            unanswered: Arc::default(),
            pending: PendingRequests::new(PENDING_MAX, PENDING_BYTES_MAX),
            direct_calls,
            has_begun: false,
            has_ended: false,
        }
    }

    /// Answers a call, if it can be answered directly. Returns any other message.
    async fn answer(&mut self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        // Requests that arrive at once run at the same time, in tasks.
        let is_alone = !self.input.has_buffered() && self.unanswered.ids().len() == 1;
        if !is_alone || !self.direct_calls.is_call(&message) {
            return Some(message);
        }
        let ClientJsonRpcMessage::Request(request) = message else {
            return Some(message);
        };
        let id = request.id.clone();
        let cancel = self.unanswered.cancel_token(&id)?;
        let answer = self.direct_calls.answer(request, cancel)?;
        let (output, unanswered) = (self.output.clone(), self.unanswered.clone());
        let call = async move {
            let answer = answer.await;
            // A cancelled request is not answered.
            if unanswered.cancel_token(&id).is_none() {
                return;
            }
            let (sent, work) = send(&output, &unanswered, answer).await;
            if let Err(error) = sent {
                tracing::error!(%error, "an answer cannot be sent");
            }
            // In a task, because this one should read the next request.
            if let Some(work) = work {
                tokio::spawn(async move { work.run().await });
            }
        };
        self.direct_calls.run(call).await;
        None
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
                deferred_work: DeferredWork::new(),
                cancel: self.direct_calls.cancel(),
            };
            if let ClientJsonRpcMessage::Request(message) = &mut message {
                message.request.extensions_mut().insert(request.deferred_work.clone());
            }
            self.unanswered.ids().insert(id, request);
        }
        if let ClientJsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            // A cancelled request is not answered.
            self.unanswered.cancel(id);
        }
        Ok(message)
    }
}

impl<R, W, H> Transport<RoleServer> for LineTransport<R, W, H>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
    H: ServerHandler,
{
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (output, unanswered) = (self.output.clone(), self.unanswered.clone());
        async move {
            let (sent, work) = send(&output, &unanswered, item).await;
            if let Some(work) = work {
                work.run().await;
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let answer = match self.input.next().await {
                Ok(Line::Complete(line)) => match self.accept(&line) {
                    Ok(message) => match self.answer(message).await {
                        Some(message) => return Some(message),
                        None => continue,
                    },
                    Err(answer) => answer,
                },
                Ok(Line::TooLong) => {
                    let message = format!("a message is limited to {MESSAGE_BYTES_MAX} bytes");
                    Some(refusal(Value::Null, ErrorCode::INVALID_REQUEST, &message))
                }
                Ok(Line::End) | Err(_) => {
                    self.has_ended = true;
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
        let drain_max = if self.has_ended {
            DIRECT_DRAIN_MAX
        } else {
            Duration::ZERO
        };
        self.direct_calls.finish(drain_max).await;
        self.output.lock().await.flush().await
    }
}

/// Sends a message. If it is an answer, also returns the work that its call deferred.
async fn send<W: AsyncWrite + Unpin>(
    output: &AsyncMutex<W>,
    unanswered: &UnansweredRequests,
    message: ServerJsonRpcMessage,
) -> (io::Result<()>, Option<DeferredWork>) {
    let answered = match &message {
        ServerJsonRpcMessage::Response(response) => Some(&response.id),
        ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    };
    let sent = write(output, &message).await;
    (sent, answered.and_then(|id| unanswered.remove(id)))
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
