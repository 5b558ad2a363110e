//! The paths of a server, and the checks before each request.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, RETRY_AFTER};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde::Deserialize;

use super::body::{self, BodyError};
use super::callers::{Caller, Callers};
use super::challenger::Challenger;
use super::connections::OpenConnection;
use super::http_sessions::HttpSessions;
use super::options::ProtectedResource;
use super::origin::OriginRules;
use super::response::{self, HttpResponse, with_header};
use crate::metrics::Metrics;
use crate::open_streams::OpenStreams;
use crate::server::Connection;
use toolwit::tool::text::json_weight;

/// The path of the protocol.
pub(super) const MCP_PATH: &str = "/mcp";

/// The path of the metadata for OAuth clients. Clients also request it with [`MCP_PATH`] appended.
pub(super) const PROTECTED_RESOURCE_PATH: &str = "/.well-known/oauth-protected-resource";

/// How long a session keeps an answer for a client that lost its connection. During this time, the memory of the answer
/// counts as pending.
pub(super) const ANSWER_RETENTION: Duration = Duration::from_secs(10);

/// Maximum memory of the message that begins a session, in bytes. The message contains the name and the capabilities of
/// the client.
const BEGINNING_BYTES_MAX: usize = 128 << 10;

/// The header with the id of a session.
const SESSION_ID: &str = "mcp-session-id";

/// Answers the requests of all connections.
pub(super) struct Router {
    pub(super) origin_rules: OriginRules,
    pub(super) callers: Callers,
    pub(super) challenger: Challenger,
    pub(super) sessions: HttpSessions,
    pub(super) protected_resource: Option<ProtectedResource>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) service: StreamableHttpService<Connection, LocalSessionManager>,
}

impl Router {
    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Incoming>, connection: &OpenConnection) -> HttpResponse {
        let response = match self.route(request, connection).await {
            Ok(response) => response,
            Err(Rejection { reason, response }) => {
                self.metrics.count_rejection(reason);
                *response
            }
        };
        self.metrics.count_response(response.status().as_u16());
        response
    }

    async fn route(&self, request: Request<Incoming>, connection: &OpenConnection) -> Result<HttpResponse, Rejection> {
        if !self.origin_rules.allows_host(request.uri(), request.headers()) {
            return Err(rejected(
                "host",
                StatusCode::FORBIDDEN,
                "the `Host` header is not a name of this server",
            ));
        }
        if !self.origin_rules.allows_origin(request.headers()) {
            return Err(rejected(
                "origin",
                StatusCode::FORBIDDEN,
                "this `Origin` may not send requests",
            ));
        }
        let path = request.uri().path();
        match path {
            MCP_PATH => self.answer_protocol(request, connection).await,
            "/healthz" => answer_get(&request, || response::text(StatusCode::OK, "ok\n")),
            "/metrics" => {
                self.identify_caller(&request, connection).await?;
                let sessions = self.sessions.len().await;
                answer_get(&request, || response::metrics(self.metrics.render(sessions)))
            }
            _ if path
                .strip_prefix(PROTECTED_RESOURCE_PATH)
                .is_some_and(|rest| rest.is_empty() || rest == MCP_PATH) =>
            {
                match &self.protected_resource {
                    Some(metadata) => answer_get(&request, || response::json(metadata)),
                    None => Err(not_found()),
                }
            }
            _ => Err(not_found()),
        }
    }

    /// Passes a request to the protocol, after the checks of its caller, session, rate and size.
    async fn answer_protocol(
        &self,
        request: Request<Incoming>,
        connection: &OpenConnection,
    ) -> Result<HttpResponse, Rejection> {
        let caller = self.identify_caller(&request, connection).await?;
        if let Err(wait) = caller.rate.take() {
            let rejection = rejected("rate", StatusCode::TOO_MANY_REQUESTS, "too many requests");
            let seconds = wait.as_secs().saturating_add(1).to_string();
            return Err(rejection.with_header(RETRY_AFTER, &seconds));
        }
        let principal = caller.principal;
        let session = request.headers().get(SESSION_ID).cloned();
        let streams_of = |id: &HeaderValue| self.sessions.streams(id.to_str().ok()?, principal.name());
        let streams = session.as_ref().map(|id| {
            let unknown = || rejected("session", StatusCode::NOT_FOUND, "the session does not exist");
            streams_of(id).ok_or_else(unknown)
        });
        let streams = streams.transpose()?;
        let stream = streams.as_ref().map(OpenStreams::open);
        let can_begin = session.is_none() && *request.method() == Method::POST;
        let (mut parts, body) = request.into_parts();
        let reserved = caller.pending.reserve(body::size_max(&body));
        let reserved = reserved.ok_or_else(too_many_pending)?;
        let body = body::read(body).await.map_err(|error| match error {
            BodyError::TooLarge => rejected("body", StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
            BodyError::TooManyParts => rejected(
                "body",
                StatusCode::PAYLOAD_TOO_LARGE,
                "the body has too many values and names",
            ),
            BodyError::TooSlow => rejected("body", StatusCode::REQUEST_TIMEOUT, "the body took too long"),
            BodyError::Broken => rejected("body", StatusCode::BAD_REQUEST, "the body is incomplete"),
        })?;
        let pending = caller.pending.adjust(reserved, &body).ok_or_else(too_many_pending)?;
        let begin_guard = if can_begin && begins_session(&body) {
            // A session stores the information that the client sends about itself.
            if json_weight(&body) > BEGINNING_BYTES_MAX {
                let message = "the first message of a session is too large";
                return Err(rejected("body", StatusCode::PAYLOAD_TOO_LARGE, message));
            }
            let guard = self.sessions.begin(principal.group(), self.callers.group_count()).await;
            Some(guard.ok_or_else(too_many_sessions)?)
        } else {
            None
        };
        // The token is not needed any more, and tools must not see it.
        parts.headers.remove(http::header::AUTHORIZATION);
        parts.extensions.insert(principal.clone());
        streams.and_then(|streams| parts.extensions.insert(streams));
        let answer = self
            .service
            .handle(Request::from_parts(parts, Full::<Bytes>::new(body)))
            .await;
        let new_session = answer.headers().get(SESSION_ID).filter(|_| session.is_none());
        if let Some(id) = new_session.and_then(|id| id.to_str().ok()) {
            self.sessions.add(id, &principal).await;
        }
        drop(begin_guard);
        let retention = if session.is_some() {
            ANSWER_RETENTION
        } else {
            Duration::ZERO
        };
        let answer = response::track_pending(answer, pending, stream, retention);
        Ok(with_header(answer, CACHE_CONTROL, "no-store"))
    }

    /// Returns the caller of a request, and admits the connection.
    async fn identify_caller(
        &self,
        request: &Request<Incoming>,
        connection: &OpenConnection,
    ) -> Result<Caller, Rejection> {
        let caller = self.callers.caller(request.headers()).await;
        let caller = caller.map_err(|refusal| self.challenger.rejection(&refusal))?;
        connection.admit();
        Ok(caller)
    }
}

/// The part of a message that decides whether it begins a session.
#[derive(Deserialize)]
struct MessageMethod<'m> {
    #[serde(borrow)]
    method: Cow<'m, str>,
}

/// Returns whether the body of a request without a session id may begin a session. The protocol library begins a
/// session for the method `initialize`, in all revisions. Returns `true` also if this parser does not find exactly one
/// method, because the parser of the library might read `initialize`.
fn begins_session(body: &[u8]) -> bool {
    let message = serde_json::from_slice::<MessageMethod<'_>>(body);
    message.map_or(true, |message| message.method == "initialize")
}

/// The response to a request that does not reach the protocol, and the reason that the metrics count.
pub(super) struct Rejection {
    reason: &'static str,
    response: Box<HttpResponse>,
}

impl Rejection {
    pub(super) fn with_header(mut self, name: http::HeaderName, value: &str) -> Self {
        self.response = Box::new(with_header(*self.response, name, value));
        self
    }
}

pub(super) fn rejected(reason: &'static str, status: StatusCode, message: &str) -> Rejection {
    Rejection {
        reason,
        response: Box::new(response::text(status, format!("{message}\n"))),
    }
}

fn too_many_pending() -> Rejection {
    let message = "too many requests are not answered yet";
    rejected("pending", StatusCode::TOO_MANY_REQUESTS, message).with_header(RETRY_AFTER, "1")
}

fn too_many_sessions() -> Rejection {
    let message = "the server has too many sessions";
    rejected("sessions", StatusCode::SERVICE_UNAVAILABLE, message).with_header(RETRY_AFTER, "60")
}

fn not_found() -> Rejection {
    rejected(
        "path",
        StatusCode::NOT_FOUND,
        "there is nothing here; the protocol is at `/mcp`",
    )
}

/// Answers a GET or HEAD request, and rejects every other method.
fn answer_get(request: &Request<Incoming>, answer: impl FnOnce() -> HttpResponse) -> Result<HttpResponse, Rejection> {
    if [Method::GET, Method::HEAD].contains(request.method()) {
        return Ok(answer());
    }
    let rejection = rejected(
        "method",
        StatusCode::METHOD_NOT_ALLOWED,
        "only GET and HEAD are allowed",
    );
    Err(rejection.with_header(ALLOW, "GET, HEAD"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_may_begin_a_session_unless_its_only_method_is_another_one() {
        for body in [
            r#"{"method":"initialize"}"#,
            r#"{"method":"initi\u0061lize"}"#,
            r#"{"method":"tools/list","method":"initialize"}"#,
            r#"{"result":{}}"#,
            r#"[{"method":"tools/list"}]"#,
            "{",
        ] {
            assert!(begins_session(body.as_bytes()), "{body}");
        }
        assert!(!begins_session(
            br#"{"params":{"method":"initialize"},"method":"tools/call"}"#
        ));
    }
}
