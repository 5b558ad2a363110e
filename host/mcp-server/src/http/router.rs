//! Routes HTTP requests by their path, and checks them before they reach the MCP service.

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

use super::auth_challenges::AuthChallenges;
use super::body::{self, BodyError};
use super::callers::{Caller, Callers};
use super::connections::OpenConnection;
use super::http_sessions::HttpSessions;
use super::options::ProtectedResource;
use super::origin::OriginRules;
use super::response::{self, HttpResponse, with_header};
use crate::metrics::Metrics;
use crate::open_streams::OpenStreams;
use crate::server::Connection;
use toolwit::tool::text::json_weight;

/// The path of the MCP endpoint.
pub(super) const MCP_PATH: &str = "/mcp";

/// The path of the metadata for OAuth clients (RFC 9728). Clients also request this path with [`MCP_PATH`] appended.
pub(super) const PROTECTED_RESOURCE_PATH: &str = "/.well-known/oauth-protected-resource";

/// How long a session keeps an answer for a client that lost its connection. During this time, the answer counts towards
/// the memory limit of unanswered requests.
pub(super) const ANSWER_RETENTION: Duration = Duration::from_secs(10);

/// Maximum memory of the parsed message that begins a session, in bytes. The session stores the name and the capabilities
/// of the client from this message.
const INITIALIZE_BYTES_MAX: usize = 128 << 10;

/// The header with the id of a session.
const SESSION_ID_HEADER: &str = "mcp-session-id";

/// Answers the requests of all connections.
pub(super) struct Router {
    pub(super) origin_rules: OriginRules,
    pub(super) callers: Callers,
    pub(super) auth_challenges: AuthChallenges,
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
            MCP_PATH => self.answer_mcp(request, connection).await,
            "/healthz" => answer_get(&request, || response::text(StatusCode::OK, "ok\n")),
            "/metrics" => {
                self.identify_caller(&request, connection).await?;
                let sessions = self.sessions.len().await;
                answer_get(&request, || response::metrics(self.metrics.render(sessions)))
            }
            _ if path
                .strip_prefix(PROTECTED_RESOURCE_PATH)
                .is_some_and(|suffix| suffix.is_empty() || suffix == MCP_PATH) =>
            {
                match &self.protected_resource {
                    Some(metadata) => answer_get(&request, || response::json(metadata)),
                    None => Err(not_found()),
                }
            }
            _ => Err(not_found()),
        }
    }

    /// Checks the caller, the rate, the session and the size of a request, and passes the request to the MCP service.
    async fn answer_mcp(
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
        let session_id = request.headers().get(SESSION_ID_HEADER).cloned();
        let streams_of = |id: &HeaderValue| self.sessions.streams(id.to_str().ok()?, principal.name());
        let streams = session_id.as_ref().map(|id| {
            let unknown = || rejected("session", StatusCode::NOT_FOUND, "the session does not exist");
            streams_of(id).ok_or_else(unknown)
        });
        let streams = streams.transpose()?;
        let open_stream = streams.as_ref().map(OpenStreams::open);
        let is_post_without_session = session_id.is_none() && *request.method() == Method::POST;
        let (mut parts, body) = request.into_parts();
        let pending = caller.pending.reserve(body::size_max(&body));
        let pending = pending.ok_or_else(too_many_pending)?;
        let body = body::read(body).await.map_err(|error| match error {
            BodyError::TooLarge => rejected("body", StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
            BodyError::TooManyParts => rejected(
                "body",
                StatusCode::PAYLOAD_TOO_LARGE,
                "the body has too many JSON values and names",
            ),
            BodyError::TooSlow => rejected("body", StatusCode::REQUEST_TIMEOUT, "the body took too long"),
            BodyError::Broken => rejected("body", StatusCode::BAD_REQUEST, "the body is incomplete"),
        })?;
        let pending = caller.pending.adjust(pending, &body).ok_or_else(too_many_pending)?;
        let begin_guard = if is_post_without_session && may_begin_session(&body) {
            if json_weight(&body) > INITIALIZE_BYTES_MAX {
                let message = "the first message of a session is too large";
                return Err(rejected("body", StatusCode::PAYLOAD_TOO_LARGE, message));
            }
            let group_count = self.callers.group_count();
            let guard = self.sessions.permit_new_session(principal.group(), group_count).await;
            Some(guard.ok_or_else(too_many_sessions)?)
        } else {
            None
        };
        // Tools must not see the token.
        parts.headers.remove(http::header::AUTHORIZATION);
        parts.extensions.insert(principal.clone());
        streams.and_then(|streams| parts.extensions.insert(streams));
        let answer = self
            .service
            .handle(Request::from_parts(parts, Full::<Bytes>::new(body)))
            .await;
        let new_session = answer.headers().get(SESSION_ID_HEADER).filter(|_| session_id.is_none());
        if let Some(id) = new_session.and_then(|id| id.to_str().ok()) {
            self.sessions.add(id, &principal).await;
        }
        drop(begin_guard);
        // Only a session keeps its answers.
        let retention = if session_id.is_some() {
            ANSWER_RETENTION
        } else {
            Duration::ZERO
        };
        let answer = response::track_pending(answer, pending, open_stream, retention);
        Ok(with_header(answer, CACHE_CONTROL, "no-store"))
    }

    /// Returns the caller of a request, and admits the connection: no other connection can replace it any more.
    async fn identify_caller(
        &self,
        request: &Request<Incoming>,
        connection: &OpenConnection,
    ) -> Result<Caller, Rejection> {
        let caller = self.callers.caller(request.headers()).await;
        let caller = caller.map_err(|refusal| self.auth_challenges.rejection(&refusal))?;
        connection.admit();
        Ok(caller)
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

/// The response to a request that is not passed to the MCP service, and the reason under which the metrics count it.
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
        "the path does not exist; the MCP endpoint is `/mcp`",
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
