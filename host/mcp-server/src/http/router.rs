//! Routes HTTP requests by their path, and checks them before they reach the MCP service.

use std::sync::Arc;

use http::header::{ALLOW, ORIGIN, RETRY_AFTER};
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

use super::auth_challenges::AuthChallenges;
use super::callers::{Caller, Callers};
use super::connections::OpenConnection;
use super::cors;
use super::http_sessions::HttpSessions;
use super::options::ProtectedResource;
use super::origin::OriginRules;
use super::response::{self, HttpResponse, with_header};
use super::rpc_error;
use crate::metrics::Metrics;
use crate::server::Connection;

/// The path of the MCP endpoint.
pub(super) const MCP_PATH: &str = "/mcp";

/// The path of the metadata for OAuth clients (RFC 9728). Clients also request this path with [`MCP_PATH`] appended.
pub(super) const PROTECTED_RESOURCE_PATH: &str = "/.well-known/oauth-protected-resource";

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
        let origin = self.origin_rules.page_origin(request.headers()).cloned();
        let is_message = *request.method() == Method::POST && request.uri().path() == MCP_PATH;
        let response = match self.route(request, connection).await {
            Ok(response) => response,
            Err(Rejection { reason, response }) => {
                self.metrics.count_rejection(reason);
                *response
            }
        };
        self.metrics.count_response(response.status().as_u16());
        let response = if is_message {
            rpc_error::from_text(response).await
        } else {
            response
        };
        match origin {
            Some(origin) => cors::readable_by(origin, response),
            None => response,
        }
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
        if request.headers().contains_key(ORIGIN) && cors::is_preflight(&request) {
            return Ok(cors::preflight(request.headers()));
        }
        let path = request.uri().path();
        match path {
            MCP_PATH => self.answer_mcp(request, connection).await,
            "/healthz" => answer_get(&request, || response::text(StatusCode::OK, "ok\n")),
            "/metrics" => {
                take_rate(&self.identify_caller(&request, connection).await?)?;
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

    /// Returns the caller of a request, and admits the connection, which counts for this caller from now on.
    pub(super) async fn identify_caller(
        &self,
        request: &Request<Incoming>,
        connection: &OpenConnection,
    ) -> Result<Caller, Rejection> {
        let caller = self.callers.caller(request.headers()).await;
        let caller = caller.map_err(|refusal| self.auth_challenges.rejection(&refusal))?;
        connection.admit(&caller.principal);
        Ok(caller)
    }
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

/// Counts a request of a caller.
///
/// # Errors
/// If the caller sends too many requests.
pub(super) fn take_rate(caller: &Caller) -> Result<(), Rejection> {
    caller.rate.take().map_err(|wait| {
        let rejection = rejected("rate", StatusCode::TOO_MANY_REQUESTS, "too many requests");
        rejection.with_header(RETRY_AFTER, &wait.as_secs().saturating_add(1).to_string())
    })
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
