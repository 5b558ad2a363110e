//! Errors of the MCP endpoint as messages of the protocol.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use rmcp::model::ErrorCode;
use serde_json::Value;

use super::response::{self, HttpResponse};
use crate::message::refusal;

/// The media type of the messages of the protocol.
const JSON: &str = "application/json";

/// Maximum length of the text of an error that becomes a message, in bytes. The texts of the server are far shorter.
const TEXT_BYTES_MAX: u64 = 4 << 10;

/// Returns the response to a message that is refused with this answer.
pub(super) fn refused(answer: &Value) -> HttpResponse {
    let mut response = response::json(answer);
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

/// Returns whether the headers declare that the value of `content-type` is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.and_then(|value| value.split(';').next());
    media_type.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(JSON))
}

/// Converts the plain text of an error response to an error of the protocol, which a client of the protocol can read. The
/// status and the other headers stay. Returns other responses unchanged.
pub(super) async fn from_text(error: HttpResponse) -> HttpResponse {
    let status = error.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let is_short = hyper::body::Body::size_hint(error.body())
        .upper()
        .is_some_and(|bytes| bytes <= TEXT_BYTES_MAX);
    if !is_error || !is_short || is_json(error.headers()) {
        return error;
    }
    let (mut parts, body) = error.into_parts();
    let text = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    };
    let text = String::from_utf8_lossy(&text);
    let code = if status.is_server_error() {
        ErrorCode::INTERNAL_ERROR
    } else {
        ErrorCode::INVALID_REQUEST
    };
    let (json, body) = response::json(&refusal(Value::Null, code, text.trim())).into_parts();
    parts.headers.extend(json.headers);
    HttpResponse::from_parts(parts, body)
}

/// Returns the text of the event that carries a message in a stream of events.
pub(super) fn event(message: &[u8]) -> Bytes {
    let mut event = b"data: ".to_vec();
    event.extend_from_slice(message);
    event.extend_from_slice(b"\n\n");
    event.into()
}
