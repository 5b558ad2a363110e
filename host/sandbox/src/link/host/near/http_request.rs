//! `http-request` of `near:agent/host`: sends a request through the [`HttpGate`](crate::link::host::http::HttpGate), and
//! returns the complete response.

use std::time::Duration;

use http::HeaderMap;
use serde_json::{Map, Value};

use super::Context;
use super::types::{HttpErrorKind, HttpFailure, HttpResponse, RequestParameters};
use crate::link::host::http::{ExchangeError, build_request, collect_headers, exchange};
use toolwit_core::limits::{ByteCount, HEADER_BYTES_MAX};
use toolwit_core::text::parse_json;

/// Sends a request. The inner error is returned to the guest; the outer one traps it.
pub(super) async fn send(
    store: &mut Context<'_>,
    (method, url, headers, body, timeout_ms): RequestParameters,
) -> wasmtime::Result<Result<HttpResponse, HttpFailure>> {
    let headers = request_headers(&headers);
    let request = headers.and_then(|headers| build_request(&method, &url, headers, body));
    let timeout = timeout_ms.map(|ms| Duration::from_millis(ms.into()));
    let response = exchange(store, request, timeout).await;
    Ok(response.map_err(http_failure).map(|response| HttpResponse {
        status: response.status.as_u16(),
        headers: headers_json(&response.headers),
        body: response.body,
    }))
}

/// Parses the headers of a request, a JSON object. Blank text stands for no headers.
fn request_headers(text: &str) -> Result<HeaderMap, ExchangeError> {
    if text.trim().is_empty() {
        return Ok(HeaderMap::new());
    }
    if text.len() > HEADER_BYTES_MAX {
        let message = format!("the headers have more than {}", ByteCount(HEADER_BYTES_MAX as u64));
        return Err(ExchangeError::InvalidRequest(message));
    }
    let Ok(Value::Object(fields)) = parse_json(text) else {
        let message = "the headers are not a JSON object".to_owned();
        return Err(ExchangeError::InvalidRequest(message));
    };
    collect_headers(fields.into_iter().map(|(name, value)| match value {
        Value::String(text) => (name, text),
        value => (name, value.to_string()),
    }))
}

/// Returns headers as a JSON object. The values of a repeated header are joined with commas.
fn headers_json(headers: &HeaderMap) -> String {
    let mut fields = Map::new();
    for name in headers.keys() {
        let values = headers.get_all(name).iter();
        let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        fields.insert(name.as_str().to_owned(), values.join(", ").into());
    }
    Value::Object(fields).to_string()
}

/// Converts the error of an exchange.
fn http_failure(error: ExchangeError) -> HttpFailure {
    match error {
        ExchangeError::InvalidRequest(message) => HttpFailure::unsent(HttpErrorKind::Input, message),
        ExchangeError::Denied(message) => HttpFailure::unsent(HttpErrorKind::NetworkDenied, message),
        ExchangeError::TooLarge(message) => HttpFailure::sent(HttpErrorKind::OutputTooLarge, message),
        ExchangeError::Timeout(message) | ExchangeError::Failed(message) => {
            HttpFailure::sent(HttpErrorKind::Client, message)
        }
    }
}
