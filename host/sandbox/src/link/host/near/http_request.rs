//! `http-request` of `near:agent/host`: sends a request through the [`HttpGate`](crate::link::host::http::HttpGate), and
//! returns the complete response.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Value};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpView as _};

use super::Context;
use super::types::{HttpErrorKind, HttpFailure, HttpResponse, RequestParameters};
use crate::link::host::http::{ConnectionDriver, is_forbidden_header};
use toolwit_core::limits::{ByteCount, HEADER_BYTES_MAX};
use toolwit_core::text::parse_json;

/// The time limit of a request and its response, if the guest sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends a request. The inner error is returned to the guest; the outer one traps it.
pub(super) async fn send(
    store: &mut Context<'_>,
    (method, url, headers, body, timeout_ms): RequestParameters,
) -> wasmtime::Result<Result<HttpResponse, HttpFailure>> {
    let request = match build_request(&method, &url, &headers, body) {
        Ok(request) => request,
        Err(failure) => {
            // Each call of the guest is counted. For a valid request, `HostState::http` counts the call.
            store.data_mut().meter.count_host_call();
            return Ok(Err(failure));
        }
    };
    let timeout = timeout_ms.map_or(DEFAULT_TIMEOUT, |ms| Duration::from_millis(ms.into()));
    let options = RequestOptions {
        connect_timeout: Some(timeout),
        first_byte_timeout: Some(timeout),
        between_bytes_timeout: Some(timeout),
    };
    let body_bytes_max = store.data().meter.host_call_bytes_max();
    let sending = store
        .data_mut()
        .http()
        .hooks
        .send_request(request, Some(options), Box::new(async { Ok(()) }));
    let exchange = async {
        let (response, driver) = Box::into_pin(sending).await.map_err(http_failure)?;
        read_response(response, driver, body_bytes_max).await
    };
    // Boxed, because this future would otherwise enlarge the future of every call.
    let result = tokio::time::timeout(timeout, Box::pin(exchange)).await;
    Ok(result.unwrap_or_else(|_| {
        let message = format!("the request took longer than {} ms", timeout.as_millis());
        Err(HttpFailure::sent(HttpErrorKind::Client, message))
    }))
}

/// Creates a request from the parameters of the guest. Its target is not checked here: the HTTP gate checks the target when
/// the request is sent.
fn build_request(
    method: &str,
    url: &str,
    headers: &str,
    body: Option<Vec<u8>>,
) -> Result<Request<WasiBody>, HttpFailure> {
    let invalid = |message: &str| HttpFailure::unsent(HttpErrorKind::Input, message);
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| invalid("the method is not valid"))?;
    let uri: Uri = url.parse().map_err(|_| invalid("the URL is not valid"))?;
    if uri.scheme().is_none() || uri.authority().is_none() {
        return Err(invalid("the URL has no scheme or no host"));
    }
    let body = Full::new(Bytes::from(body.unwrap_or_default()));
    let body = body.map_err(|never| match never {}).boxed_unsync();
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = request_headers(headers)?;
    Ok(request)
}

/// Parses the headers of a request, a JSON object. Blank text stands for no headers.
fn request_headers(text: &str) -> Result<HeaderMap, HttpFailure> {
    let invalid = |message: String| HttpFailure::unsent(HttpErrorKind::Input, message);
    if text.trim().is_empty() {
        return Ok(HeaderMap::new());
    }
    if text.len() > HEADER_BYTES_MAX {
        let message = format!("the headers have more than {}", ByteCount(HEADER_BYTES_MAX as u64));
        return Err(invalid(message));
    }
    let Ok(Value::Object(fields)) = parse_json(text) else {
        return Err(invalid("the headers are not a JSON object".to_owned()));
    };
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let value = match value {
            Value::String(text) => text,
            value => value.to_string(),
        };
        let header = HeaderName::from_bytes(name.as_bytes())
            .ok()
            .zip(HeaderValue::from_str(&value).ok());
        match header {
            Some((name, _)) if is_forbidden_header(&name) => {
                return Err(invalid(format!("the header `{name}` is reserved for the host")));
            }
            // The host sends the complete body, and sets its length itself.
            Some((CONTENT_LENGTH, _)) => {}
            Some((name, value)) => drop(headers.append(name, value)),
            None => return Err(invalid(format!("the header `{}` is not valid", name.escape_debug()))),
        }
    }
    Ok(headers)
}

/// Reads a response to its end. Polls the driver of its connection meanwhile, because the body arrives only while the driver
/// runs.
async fn read_response(
    response: Response<WasiBody>,
    driver: ConnectionDriver,
    body_bytes_max: usize,
) -> Result<HttpResponse, HttpFailure> {
    let (parts, body) = response.into_parts();
    let mut reading = pin!(read_body(body, body_bytes_max));
    let mut driver = Box::into_pin(driver);
    let mut is_open = true;
    let body = loop {
        tokio::select! {
            biased;
            read = &mut reading => break read?,
            // The error of the driver is ignored, because the body reports an error of the connection too.
            _ = &mut driver, if is_open => is_open = false,
        }
    };
    Ok(HttpResponse {
        status: parts.status.as_u16(),
        headers: headers_json(&parts.headers),
        body,
    })
}

async fn read_body(body: WasiBody, bytes_max: usize) -> Result<Vec<u8>, HttpFailure> {
    let (mut body, mut bytes) = (pin!(body), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(http_failure)?.into_data() else {
            continue;
        };
        if bytes.len().saturating_add(data.len()) > bytes_max {
            let message = format!("the response has more than {}", ByteCount(bytes_max as u64));
            return Err(HttpFailure::sent(HttpErrorKind::OutputTooLarge, message));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
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

/// Converts the error of a request that the HTTP gate refused or that failed in the network.
fn http_failure(error: Error) -> HttpFailure {
    let message = error.to_string();
    match error {
        Error::HttpRequestDenied | Error::DestinationIpProhibited => {
            HttpFailure::unsent(HttpErrorKind::NetworkDenied, message)
        }
        Error::HttpRequestUriInvalid | Error::HttpRequestHeaderSectionSize(_) => {
            HttpFailure::unsent(HttpErrorKind::Input, message)
        }
        Error::HttpResponseBodySize(_) | Error::HttpResponseHeaderSectionSize(_) => {
            HttpFailure::sent(HttpErrorKind::OutputTooLarge, message)
        }
        _ => HttpFailure::sent(HttpErrorKind::Client, message),
    }
}
