//! The answers that let a web page of an allowed origin read responses (CORS).

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};

use super::response::{self, HttpResponse, with_header};

/// The methods of the MCP endpoint.
const METHODS: &str = "GET, POST, DELETE";

/// The request headers of MCP clients. Headers that begin with [`MCP_PREFIX`] are allowed, too.
const REQUEST_HEADERS: [&str; 4] = ["authorization", "content-type", "accept", "last-event-id"];

/// The prefix of the protocol's own headers.
const MCP_PREFIX: &str = "mcp-";

/// The response headers that a web page may read.
const RESPONSE_HEADERS: &str = "mcp-session-id, mcp-protocol-version, www-authenticate, retry-after";

/// How long a browser may use the answer to a preflight request, in seconds.
const MAX_AGE_S: &str = "600";

/// The question of a browser whether its page, of another origin than the server, may use a server of the local network.
const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Returns whether a request is the question of a browser whether its page may send another request. Such a request has no
/// token.
pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
    *request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Returns the answer to the preflight request of a page whose origin is allowed.
pub(super) fn preflight(headers: &HeaderMap) -> HttpResponse {
    let response = response::text(StatusCode::NO_CONTENT, "");
    let response = with_header(response, ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    let response = with_header(response, ACCESS_CONTROL_ALLOW_HEADERS, &allowed_headers(headers));
    let response = with_header(response, ACCESS_CONTROL_MAX_AGE, MAX_AGE_S);
    if headers.contains_key(REQUEST_PRIVATE_NETWORK) {
        with_header(response, ALLOW_PRIVATE_NETWORK, "true")
    } else {
        response
    }
}

/// Lets a page of an allowed origin read a response.
pub(super) fn readable_by(origin: HeaderValue, mut response: HttpResponse) -> HttpResponse {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("origin"));
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(RESPONSE_HEADERS),
    );
    response
}

/// Returns those of the requested headers that a page may send.
fn allowed_headers(headers: &HeaderMap) -> String {
    let requested = headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let requested = requested.filter_map(|value| value.to_str().ok());
    let names = requested
        .flat_map(|names| names.split(','))
        .map(|name| name.trim().to_ascii_lowercase());
    let allowed = names.filter(|name| REQUEST_HEADERS.contains(&name.as_str()) || name.starts_with(MCP_PREFIX));
    allowed.collect::<Vec<_>>().join(", ")
}
