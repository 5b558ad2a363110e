//! The intake of messages: checks messages, answers refused messages, and answers some calls directly.

use std::sync::{Arc, OnceLock};

use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ErrorCode, GetExtensions};
use rmcp::service::Peer;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::direct_calls::{DirectCalls, RunningCalls};
use super::line_reader::{Line, LineReader};
use super::message::{IncomingLine, beginning_error, parse, refusal};
use super::outgoing::{Outgoing, send, write};
use super::transport::LineTransport;
use super::unanswered_requests::UnansweredRequest;
use crate::pending::PendingRequests;
use toolwit::tool::DeferredWork;

/// Maximum length of a message, in bytes. The arguments of a call are limited to less.
const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// Maximum number of requests that are not answered yet.
const PENDING_MAX: usize = 1_000;

/// Maximum memory of the requests that are not answered yet, in bytes.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// Maximum number of messages that wait until the protocol library receives them.
const WAITING_MAX: usize = 16;

/// Reads and checks the messages of one client.
pub(super) struct Intake<W, H> {
    outgoing: Outgoing<W>,
    /// The limits on the number and the memory of unanswered requests.
    pending: PendingRequests,
    direct_calls: DirectCalls<H>,
    /// The channel to the transport.
    messages: mpsc::Sender<ClientJsonRpcMessage>,
    stop: CancellationToken,
    /// Whether a request other than `ping` has begun the connection.
    has_begun: bool,
}

impl<W, H> Intake<W, H>
where
    W: AsyncWrite + Unpin + Send + 'static,
    H: ServerHandler,
{
    /// Returns the intake of a connection with its transport.
    pub(super) fn with_transport(
        handler: Arc<H>,
        peer: Arc<OnceLock<Peer<RoleServer>>>,
        output: W,
    ) -> (Self, LineTransport<W>) {
        let (running_calls, stop) = (RunningCalls::new(), CancellationToken::new());
        let outgoing = Outgoing::new(output);
        let (sender, messages) = mpsc::channel(WAITING_MAX);
        let transport = LineTransport {
            messages,
            outgoing: outgoing.clone(),
            running_calls: running_calls.clone(),
            has_ended: false,
            intake: stop.clone().drop_guard(),
        };
        let intake = Self {
            outgoing,
            pending: PendingRequests::new(PENDING_MAX, PENDING_BYTES_MAX),
            direct_calls: DirectCalls::new(handler, peer, running_calls),
            messages: sender,
            stop,
            has_begun: false,
        };
        (intake, transport)
    }

    /// Reads messages until the input ends, the answer to a refused message cannot be sent, or the connection ends.
    /// Answers refused messages and direct calls, and passes the other messages to the transport.
    pub(super) async fn read(mut self, input: impl AsyncRead + Unpin) {
        let mut input = LineReader::new(input, MESSAGE_BYTES_MAX);
        loop {
            let line = tokio::select! {
                biased;
                line = input.next() => line,
                () = self.stop.cancelled() => return,
            };
            let accepted = match line {
                Ok(Line::Complete(line)) => self.accept(&line),
                Ok(Line::TooLong) => {
                    let message = format!("a message is limited to {MESSAGE_BYTES_MAX} bytes");
                    Err(Some(refusal(Value::Null, ErrorCode::INVALID_REQUEST, &message)))
                }
                Ok(Line::End) | Err(_) => return,
            };
            let is_connected = match accepted {
                Ok(message) => match self.answer(message, input.has_buffered()).await {
                    Some(message) => self.messages.send(message).await.is_ok(),
                    None => true,
                },
                Err(Some(answer)) => write(&self.outgoing.output, &answer).await.is_ok(),
                Err(None) => true,
            };
            if !is_connected {
                return;
            }
        }
    }

    /// Answers a call, if it can be answered directly. Returns any other message. `has_more` states whether more input
    /// than this message has been read.
    async fn answer(&mut self, message: ClientJsonRpcMessage, has_more: bool) -> Option<ClientJsonRpcMessage> {
        // Requests that arrive together run concurrently, in tasks of the protocol library.
        let is_alone = !has_more && self.outgoing.unanswered.len() == 1;
        let Some(peer) = self.direct_calls.peer_of_call(&message).filter(|_| is_alone).cloned() else {
            return Some(message);
        };
        let ClientJsonRpcMessage::Request(request) = message else {
            return Some(message);
        };
        let id = request.id.clone();
        let cancel = self.outgoing.unanswered.cancel_token(&id).unwrap_or_default();
        let answer = self.direct_calls.answer(request, peer, cancel);
        let outgoing = self.outgoing.clone();
        let call = async move {
            let answer = answer.await;
            // A cancelled request is not answered.
            if outgoing.unanswered.cancel_token(&id).is_none() {
                return;
            }
            let (sent, work) = send(&outgoing, answer).await;
            if let Err(error) = sent {
                tracing::error!(%error, "an answer cannot be sent");
            }
            if let Some(work) = work {
                work.run();
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
            // The protocol library would end the connection at a message that cannot begin it.
            let Some(id) = &request_id else { return Err(None) };
            if let Some(error) = beginning_error(line) {
                return Err(Some(refusal(json_of(id), error.code, &error.message)));
            }
            self.has_begun = !is_ping(line);
        }
        if let Some(id) = request_id {
            let refused = |message| Err(Some(refusal(json_of(&id), ErrorCode::INVALID_REQUEST, message)));
            if self.outgoing.unanswered.contains(&id) {
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
            self.outgoing.unanswered.insert(id, request);
        }
        if let ClientJsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            // A cancelled request is not answered.
            self.outgoing.unanswered.cancel(id);
        }
        Ok(message)
    }
}

fn json_of(id: &str) -> Value {
    serde_json::from_str(id).unwrap_or_default()
}

fn is_ping(line: &[u8]) -> bool {
    serde_json::from_slice::<Value>(line).is_ok_and(|message| message["method"] == "ping")
}
