//! Responses that do not come from the protocol.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use serde::Serialize;

/// A response with a body of any kind.
pub(super) type HttpResponse = Response<BoxBody<Bytes, Infallible>>;

/// Returns a response with a text.
pub(super) fn text(status: StatusCode, text: impl Into<String>) -> HttpResponse {
    with_type(status, "text/plain; charset=utf-8", text.into())
}

/// Returns a response with the text of metrics.
pub(super) fn metrics(text: String) -> HttpResponse {
    with_type(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text)
}

/// Returns a response with JSON.
pub(super) fn json(value: &impl Serialize) -> HttpResponse {
    let text = serde_json::to_string(value).unwrap_or_default();
    with_type(StatusCode::OK, "application/json", text)
}

/// Adds a header. A value that no header can carry is left out.
pub(super) fn with_header(mut response: HttpResponse, name: HeaderName, value: &str) -> HttpResponse {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

fn with_type(status: StatusCode, content_type: &'static str, body: String) -> HttpResponse {
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
