//! The messages that a running call sends to its client.
#![allow(deprecated, reason = "revision 2026-07-28 deprecates logging, and clients use it")]

use std::convert::Infallible;

use rmcp::RoleServer;
use rmcp::model::{InputRequest, LoggingMessageNotificationParam};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::client_request::{answer_value, server_request};
use super::log_level::level_to_wire;
use crate::open_streams::OpenStreams;
use toolwit::tool::LogLevel;

/// The reason why there is no answer, if the client has no connection.
pub(super) const CLIENT_GONE: &str = "the client is gone";

/// Maximum number of messages that wait for a slow client. Further log messages are dropped, and further questions
/// wait.
const WAITING_MAX: usize = 256;

/// A message to the client of a call.
pub(super) enum OutgoingMessage {
    Question(Box<Question>),
    Log(LogMessage),
}

/// A request to the client, and the channel for its answer: the JSON of the result, or the reason why there is no
/// result.
pub(super) struct Question {
    pub(super) request: InputRequest,
    pub(super) answer: oneshot::Sender<Result<Value, &'static str>>,
}

/// A message for the client's log.
pub(super) struct LogMessage {
    pub(super) level: LogLevel,
    pub(super) logger: String,
    pub(super) data: Value,
}

impl LogMessage {
    fn into_wire(self) -> LoggingMessageNotificationParam {
        LoggingMessageNotificationParam::new(level_to_wire(self.level), self.data).with_logger(self.logger)
    }
}

/// The messages of one call that are not sent yet.
pub(crate) struct Outbox {
    messages: mpsc::Receiver<OutgoingMessage>,
    peer: Peer<RoleServer>,
    /// The open responses of a session over HTTP. `None` for other requests.
    streams: Option<OpenStreams>,
}

impl Outbox {
    /// Creates the outbox of a request, and the sender of its messages. In a session over HTTP, a question fails if the
    /// client has no connection.
    pub(super) fn new(request: &RequestContext<RoleServer>) -> (mpsc::Sender<OutgoingMessage>, Self) {
        let (sender, messages) = mpsc::channel(WAITING_MAX);
        let parts = request.extensions.get::<http::request::Parts>();
        let outbox = Self {
            messages,
            peer: request.peer.clone(),
            streams: parts.and_then(|parts| parts.extensions.get::<OpenStreams>().cloned()),
        };
        (sender, outbox)
    }

    /// Sends messages in order. After a question, waits for the answer. Never returns. Must be polled by the task that
    /// handles the request, so that the messages are sent on the response stream of the request.
    pub(crate) async fn send(&mut self) -> Infallible {
        while let Some(message) = self.messages.recv().await {
            match message {
                OutgoingMessage::Question(question) => ask(&self.peer, self.streams.as_ref(), *question).await,
                OutgoingMessage::Log(message) => drop(self.peer.notify_logging_message(message.into_wire()).await),
            }
        }
        std::future::pending().await
    }

    /// Sends the remaining log messages at the end of the call, and drops the remaining questions.
    pub(crate) async fn finish(mut self) {
        while let Ok(message) = self.messages.try_recv() {
            if let OutgoingMessage::Log(message) = message
                && self.peer.notify_logging_message(message.into_wire()).await.is_err()
            {
                return;
            }
        }
    }
}

async fn ask(peer: &Peer<RoleServer>, streams: Option<&OpenStreams>, question: Question) {
    let Question { request, mut answer } = question;
    let Some(request) = server_request(request) else { return };
    let client_gone = async {
        match streams {
            Some(streams) => streams.closed().await,
            None => std::future::pending().await,
        }
    };
    let outcome = tokio::select! {
        // The receiver was dropped: the call was cancelled, or the user did not answer in time.
        () = answer.closed() => return,
        () = client_gone => Err(CLIENT_GONE),
        response = peer.send_request(request) => match response {
            Ok(result) => answer_value(result).ok_or("the client sent an invalid answer"),
            Err(error) => {
                tracing::warn!(%error, "a client did not answer a request");
                Err("the client did not answer the request")
            }
        },
    };
    drop(answer.send(outcome));
}
