//! The requests of the MCP endpoint, which are checked before they reach the MCP service.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CACHE_CONTROL, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use serde::Deserialize;

use super::batch;
use super::body::{self, BodyError};
use super::callers::Caller;
use super::connections::OpenConnection;
use super::response::{HttpResponse, PendingResponse, with_header};
use super::router::{Rejection, Router, rejected, take_rate};
use super::rpc_error;
use crate::message;
use crate::open_streams::OpenStreams;
use toolwit::tool::DeferredWork;
use toolwit::tool::text::json_weight;

/// How long a session keeps an answer for a client that lost its connection. During this time, the answer counts towards
/// the memory limit of unanswered requests.
pub(super) const ANSWER_RETENTION: Duration = Duration::from_secs(10);

/// Maximum memory of the parsed message that begins a session, in bytes. The session stores the name and the capabilities
/// of the client from this message.
const INITIALIZE_BYTES_MAX: usize = 128 << 10;

/// The header with the id of a session.
const SESSION_ID_HEADER: &str = "mcp-session-id";

impl Router {
    /// Checks the caller, the rate, the session and the size of a request, and passes the request to the MCP service.
    pub(super) async fn answer_mcp(
        &self,
        request: Request<Incoming>,
        connection: &OpenConnection,
    ) -> Result<HttpResponse, Rejection> {
        let caller = self.identify_caller(&request, connection).await?;
        take_rate(&caller)?;
        let session_id = request.headers().get(SESSION_ID_HEADER).cloned();
        let streams = session_id.as_ref().map(|id| self.streams_of(id, &caller)).transpose()?;
        let open_stream = streams.as_ref().map(OpenStreams::open);
        let (mut parts, body) = request.into_parts();
        let pending = caller.pending.reserve(body::size_max(&body));
        let pending = pending.ok_or_else(too_many_pending)?;
        let busy_connection = connection.begin_request();
        let body = body::read(body).await.map_err(unreadable)?;
        let pending = caller.pending.adjust(pending, &body).ok_or_else(too_many_pending)?;
        // Tools must not see the token.
        parts.headers.remove(AUTHORIZATION);
        parts.extensions.insert(caller.principal.clone());
        streams.and_then(|streams| parts.extensions.insert(streams));
        let deferred_work = DeferredWork::new();
        parts.extensions.insert(deferred_work.clone());
        parts.extensions.insert(pending.clone());
        let answer = self.answer_body(parts, body, &caller, session_id.as_ref()).await?;
        // Only a session keeps its answers.
        let retention = if session_id.is_some() {
            ANSWER_RETENTION
        } else {
            Duration::ZERO
        };
        let pending_response = PendingResponse {
            request: pending,
            connection: busy_connection,
            stream: open_stream,
            deferred_work,
            retention,
        };
        let answer = pending_response.track(answer);
        Ok(with_header(answer, CACHE_CONTROL, "no-store"))
    }

    /// Passes a request to the MCP service.
    pub(super) async fn handle(&self, parts: Parts, body: Bytes) -> HttpResponse {
        let request = Request::from_parts(parts, Full::<Bytes>::new(body));
        self.service.handle(request).await
    }

    /// Returns the open streams of the session with an id.
    ///
    /// # Errors
    /// If the caller has no such session.
    fn streams_of(&self, id: &HeaderValue, caller: &Caller) -> Result<OpenStreams, Rejection> {
        let id = id.to_str().ok();
        let streams = id.and_then(|id| self.sessions.streams(id, caller.principal.name()));
        streams.ok_or_else(|| rejected("session", StatusCode::NOT_FOUND, "the session does not exist"))
    }

    /// Answers a request with its body: a message, a batch of messages, or none.
    async fn answer_body(
        &self,
        parts: Parts,
        body: Bytes,
        caller: &Caller,
        session_id: Option<&HeaderValue>,
    ) -> Result<HttpResponse, Rejection> {
        if parts.method != Method::POST || !rpc_error::is_json(&parts.headers) {
            let is_delete = parts.method == Method::DELETE;
            let mut answer = self.handle(parts, body).await;
            if is_delete && answer.status() == StatusCode::ACCEPTED {
                // Clients in Python report every other status as a failure.
                *answer.status_mut() = StatusCode::OK;
            }
            return Ok(answer);
        }
        if session_id.is_some()
            && let Some(items) = batch::items(&parts.headers, &body)
        {
            if batch::is_too_long(&items) {
                let message = "the batch has too many messages";
                return Err(rejected("body", StatusCode::PAYLOAD_TOO_LARGE, message));
            }
            // The first message is counted with its HTTP request.
            let reserved = items.iter().skip(1).map(|item| {
                take_rate(caller)?;
                caller.pending.reserve(item.len()).ok_or_else(too_many_pending)
            });
            let reserved = reserved.collect::<Result<Vec<_>, _>>()?;
            return Ok(batch::answer(items, reserved, &parts, self).await);
        }
        match message::parse(&body) {
            message::Incoming::Refused(answer) => return Ok(rpc_error::refused(&answer)),
            message::Incoming::Ignored => {
                return Err(rejected(
                    "body",
                    StatusCode::BAD_REQUEST,
                    "the body is not a valid message",
                ));
            }
            message::Incoming::Message { .. } => {}
        }
        let begin_guard = match session_id {
            None if may_begin_session(&body) => Some(self.permit_session(&body, caller).await?),
            _ => None,
        };
        let answer = self.handle(parts, body).await;
        let new_session = answer.headers().get(SESSION_ID_HEADER).filter(|_| session_id.is_none());
        if let Some(id) = new_session.and_then(|id| id.to_str().ok()) {
            self.sessions.add(id, &caller.principal).await;
        }
        drop(begin_guard);
        Ok(answer)
    }

    /// Permits a caller to begin a session with this message. No other session begins until the guard is dropped.
    ///
    /// # Errors
    /// If the message is too large, or there are too many sessions.
    async fn permit_session(
        &self,
        message: &[u8],
        caller: &Caller,
    ) -> Result<tokio::sync::MutexGuard<'_, ()>, Rejection> {
        if json_weight(message) > INITIALIZE_BYTES_MAX {
            let message = "the first message of a session is too large";
            return Err(rejected("body", StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        let group_count = self.callers.group_count();
        let guard = self
            .sessions
            .permit_new_session(caller.principal.group(), group_count)
            .await;
        guard.ok_or_else(too_many_sessions)
    }
}

/// The method of a message, which decides whether the message begins a session.
#[derive(Deserialize)]
struct MessageMethod<'m> {
    #[serde(borrow)]
    method: Cow<'m, str>,
}

/// Returns whether the body of a request without a session id may begin a session. The protocol library (`rmcp`) begins a
/// session for the method `initialize`, in all revisions. Returns `true` also if the body does not have exactly one
/// method, because the library might read such a body as `initialize`.
fn may_begin_session(body: &[u8]) -> bool {
    let message = serde_json::from_slice::<MessageMethod<'_>>(body);
    message.map_or(true, |message| message.method == "initialize")
}

fn unreadable(error: BodyError) -> Rejection {
    let (status, message) = match error {
        BodyError::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
        BodyError::TooManyParts => (
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body has too many JSON values and names",
        ),
        BodyError::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body took too long"),
        BodyError::Broken => (StatusCode::BAD_REQUEST, "the body is incomplete"),
    };
    rejected("body", status, message)
}

fn too_many_pending() -> Rejection {
    let message = "too many requests are not answered yet";
    rejected("pending", StatusCode::TOO_MANY_REQUESTS, message).with_header(RETRY_AFTER, "1")
}

fn too_many_sessions() -> Rejection {
    let message = "the server has too many sessions";
    rejected("sessions", StatusCode::SERVICE_UNAVAILABLE, message).with_header(RETRY_AFTER, "60")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_with_exactly_one_other_method_cannot_begin_a_session() {
        for body in [
            r#"{"method":"initialize"}"#,
            r#"{"method":"initi\u0061lize"}"#,
            r#"{"method":"tools/list","method":"initialize"}"#,
            r#"{"result":{}}"#,
            r#"[{"method":"tools/list"}]"#,
            "{",
        ] {
            assert!(may_begin_session(body.as_bytes()), "{body}");
        }
        assert!(!may_begin_session(
            br#"{"params":{"method":"initialize"},"method":"tools/call"}"#
        ));
    }
}
