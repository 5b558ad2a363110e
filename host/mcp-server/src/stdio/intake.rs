//! The intake of a connection: reads and checks messages, answers refused messages, and answers some calls directly.

use std::sync::{Arc, OnceLock};

use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, GetExtensions, ProtocolVersion};
use rmcp::service::Peer;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::direct_calls::{DirectCalls, RunningCalls};
use super::line_reader::{Line, LineReader};
use super::outgoing::{Outgoing, send, write};
use super::transport::LineTransport;
use super::unanswered_requests::UnansweredRequest;
use crate::message::{Incoming, batch_items, beginning_error, error_answer, is_bootstrap, parse, refusal};
use crate::pending::PendingRequests;
use toolwit::tool::DeferredWork;

/// Maximum length of a message, in bytes. The arguments of a call have a lower limit.
const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// Maximum number of requests that are not answered yet.
const PENDING_MAX: usize = 1_000;

/// Maximum memory of the requests that are not answered yet, and of the answers that are not read yet, in bytes.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// Maximum number of messages that wait until the protocol library (`rmcp`) receives them.
const QUEUED_MESSAGES_MAX: usize = 16;

/// Reads and checks the messages of one client.
pub(super) struct Intake<W, H> {
    outgoing: Outgoing<W>,
    /// The limits on the number and the memory of unanswered requests.
    pending: PendingRequests,
    direct_calls: DirectCalls<H>,
    /// The channel to the transport.
    messages: mpsc::Sender<ClientJsonRpcMessage>,
    /// Is cancelled when the connection ends.
    stop: CancellationToken,
    /// Whether the connection has begun: with the first valid request other than `ping` and `server/discover`.
    has_begun: bool,
    /// Whether the session has the revision 2025-03-26, in which a line can be a batch of messages.
    takes_batches: bool,
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
        let (sender, messages) = mpsc::channel(QUEUED_MESSAGES_MAX);
        let transport = LineTransport {
            messages,
            outgoing: outgoing.clone(),
            running_calls: running_calls.clone(),
            has_input_ended: false,
            intake_stop: stop.clone().drop_guard(),
        };
        let intake = Self {
            outgoing,
            pending: PendingRequests::new(PENDING_MAX, PENDING_BYTES_MAX),
            direct_calls: DirectCalls::new(handler, peer, running_calls),
            messages: sender,
            stop,
            has_begun: false,
            takes_batches: false,
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
            let is_connected = match line {
                Ok(Line::Complete(line)) => self.accept_line(&line, input.has_buffered()).await,
                Ok(Line::TooLong) => {
                    let message = format!("a message is limited to {MESSAGE_BYTES_MAX} bytes");
                    let answer = refusal(Value::Null, ErrorCode::INVALID_REQUEST, &message);
                    write(&self.outgoing.output, &answer).await.is_ok()
                }
                Ok(Line::End) | Err(_) => return,
            };
            if !is_connected {
                return;
            }
        }
    }

    /// Accepts the message of a line, or the messages of a batch. `has_more` is whether the input after the line has already
    /// been read. Returns whether the connection still exists.
    async fn accept_line(&mut self, line: &[u8], has_more: bool) -> bool {
        let batch = if self.takes_batches { batch_items(line) } else { None };
        let Some(batch) = batch else {
            return self.accept(line, has_more).await;
        };
        for item in batch {
            if !self.accept(&item, true).await {
                return false;
            }
        }
        true
    }

    /// Answers a message, or passes it to the transport. Returns whether the connection still exists.
    async fn accept(&mut self, message: &[u8], has_more: bool) -> bool {
        match self.check(message) {
            Ok(message) => match self.answer_directly(message, has_more).await {
                Some(message) => self.messages.send(message).await.is_ok(),
                None => true,
            },
            Err(Some(answer)) => write(&self.outgoing.output, &answer).await.is_ok(),
            Err(None) => true,
        }
    }

    /// Answers a message if it is a call that can be answered directly. Returns any other message. `has_more` is whether the
    /// input after the message has already been read.
    async fn answer_directly(&mut self, message: ClientJsonRpcMessage, has_more: bool) -> Option<ClientJsonRpcMessage> {
        // Requests that arrive together run concurrently, in tasks of the protocol library.
        let is_only_request = !has_more && self.outgoing.unanswered.len() == 1;
        let Some(peer) = self
            .direct_calls
            .peer_of_call(&message)
            .filter(|_| is_only_request)
            .cloned()
        else {
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
            let (result, deferred_work) = send(&outgoing, answer).await;
            if let Err(error) = result {
                tracing::error!(%error, "an answer cannot be sent");
            }
            if let Some(deferred_work) = deferred_work {
                deferred_work.run();
            }
        };
        self.direct_calls.run(call).await;
        None
    }

    /// Checks a line, and returns its message. Counts a request as unanswered.
    ///
    /// # Errors
    /// If the line is refused. The error is the answer to the line, or `None` if the line needs no answer.
    fn check(&mut self, line: &[u8]) -> Result<ClientJsonRpcMessage, Option<Value>> {
        // A client can write a byte order mark before its first message.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let (mut message, request_id) = match parse(line) {
            Incoming::Message { message, request_id } => (*message, request_id),
            Incoming::Refused(answer) => return Err(Some(answer)),
            Incoming::Ignored => return Err(None),
        };
        if !self.has_begun {
            // At a message that cannot begin the connection, the protocol library would end the connection.
            let Some(id) = &request_id else { return Err(None) };
            if let Some(error) = beginning_error(line) {
                return Err(Some(error_answer(parse_id(id), &error)));
            }
            self.has_begun = !is_bootstrap(line);
            self.takes_batches = takes_batches(&message);
        }
        if let Some(id) = request_id {
            let refused = |message| Err(Some(refusal(parse_id(&id), ErrorCode::INVALID_REQUEST, message)));
            if self.outgoing.unanswered.contains(&id) {
                return refused("a request with this id is not answered yet");
            }
            let pending = self.pending.reserve(0);
            let Some(pending) = pending.and_then(|pending| self.pending.adjust(pending, line)) else {
                return refused("too many requests are not answered yet; repeat the request later");
            };
            let request = UnansweredRequest {
                pending,
                deferred_work: DeferredWork::new(),
                cancel: self.direct_calls.cancel_token(),
            };
            if let ClientJsonRpcMessage::Request(message) = &mut message {
                let extensions = message.request.extensions_mut();
                extensions.insert(request.deferred_work.clone());
                extensions.insert(request.pending.clone());
            }
            self.outgoing.unanswered.insert(id, request);
        }
        if let ClientJsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            // This stops a direct call. The protocol library stops other calls when it receives the message.
            self.outgoing.unanswered.cancel(id);
        }
        Ok(message)
    }
}

/// Parses the id of a request, which is JSON text.
fn parse_id(id: &str) -> Value {
    serde_json::from_str(id).unwrap_or_default()
}

/// Returns whether a message begins a session of the revision that has batches.
fn takes_batches(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else {
        return false;
    };
    matches!(&request.request, ClientRequest::InitializeRequest(initialize)
        if initialize.params.protocol_version == ProtocolVersion::V_2025_03_26)
}
