//! A complete exchange: sends a request of a guest through the [`HttpGate`](super::HttpGate), and reads the response to its end.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use wasmtime::StoreContextMut;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpView as _};

use super::gate::{ConnectionDriver, is_forbidden_header};
use crate::link::host::host_state::HostState;
use toolwit_core::limits::{ByteCount, HEADER_BYTES_MAX};

/// The time limit of a request and its response, if the guest sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// A response that was read completely.
pub(in crate::link::host) struct CompleteResponse {
    pub(in crate::link::host) status: StatusCode,
    pub(in crate::link::host) headers: HeaderMap,
    pub(in crate::link::host) body: Vec<u8>,
}

/// The reason why an exchange has no response, with a message for the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::link::host) enum ExchangeError {
    /// The request is not valid. It was not sent.
    InvalidRequest(String),
    /// The request is not granted. It was not sent.
    Denied(String),
    /// The response is too large.
    TooLarge(String),
    /// The response did not arrive in time.
    Timeout(String),
    /// The connection failed.
    Failed(String),
}

impl ExchangeError {
    /// Converts the error of a request that the gate refused or that failed in the network.
    fn of(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::HttpRequestDenied | Error::DestinationIpProhibited => Self::Denied(message),
            Error::HttpRequestUriInvalid | Error::HttpRequestHeaderSectionSize(_) => Self::InvalidRequest(message),
            Error::HttpResponseBodySize(_)
            | Error::HttpResponseHeaderSectionSize(_)
            | Error::HttpRequestBodySize(_) => Self::TooLarge(message),
            Error::ConnectionTimeout | Error::ConnectionReadTimeout | Error::HttpResponseTimeout => {
                Self::Timeout(message)
            }
            _ => Self::Failed(message),
        }
    }
}

/// Creates a request from the parameters of a guest. The gate checks its target when the request is sent.
///
/// # Errors
/// [`ExchangeError::InvalidRequest`].
pub(in crate::link::host) fn build_request(
    method: &str,
    url: &str,
    mut headers: HeaderMap,
    body: Option<Vec<u8>>,
) -> Result<Request<WasiBody>, ExchangeError> {
    let invalid = |message: &str| ExchangeError::InvalidRequest(message.to_owned());
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| invalid("the method is not valid"))?;
    let uri: Uri = url.parse().map_err(|_| invalid("the URL is not valid"))?;
    if uri.scheme().is_none() || uri.authority().is_none() {
        return Err(invalid("the URL has no scheme or no host"));
    }
    let body = Bytes::from(body.unwrap_or_default());
    // The HTTP client sets the length. Another length would frame the message differently.
    if let Some(length) = headers.remove(CONTENT_LENGTH)
        && length.to_str().ok().and_then(|length| length.parse().ok()) != Some(body.len())
    {
        return Err(invalid(
            "the header `content-length` differs from the length of the body",
        ));
    }
    let body = Full::new(body);
    let body = body.map_err(|never| match never {}).boxed_unsync();
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Collects the headers of a request.
///
/// # Errors
/// [`ExchangeError::InvalidRequest`] if the headers are too large, or one of them is not valid or reserved for the host.
pub(in crate::link::host) fn collect_headers(
    fields: impl Iterator<Item = (String, String)>,
) -> Result<HeaderMap, ExchangeError> {
    let (mut headers, mut bytes) = (HeaderMap::new(), 0);
    for (name, value) in fields {
        bytes += name.len() + value.len();
        if bytes > HEADER_BYTES_MAX {
            let message = format!("the headers have more than {}", ByteCount(HEADER_BYTES_MAX as u64));
            return Err(ExchangeError::InvalidRequest(message));
        }
        let header = HeaderName::from_bytes(name.as_bytes())
            .ok()
            .zip(HeaderValue::from_str(&value).ok());
        match header {
            Some((name, _)) if is_forbidden_header(&name) => {
                let message = format!("the header `{name}` is reserved for the host");
                return Err(ExchangeError::InvalidRequest(message));
            }
            // The number of headers is limited by their size, which is below the maximum of the map.
            Some((name, value)) => drop(headers.try_append(name, value)),
            None => {
                let message = format!("the header `{}` is not valid", name.escape_debug());
                return Err(ExchangeError::InvalidRequest(message));
            }
        }
    }
    Ok(headers)
}

/// Sends a request, and reads the response to its end. Counts a call into the host, also for an invalid request.
pub(in crate::link::host) async fn exchange(
    store: &mut StoreContextMut<'_, HostState>,
    request: Result<Request<WasiBody>, ExchangeError>,
    timeout: Option<Duration>,
) -> Result<CompleteResponse, ExchangeError> {
    let request = match request {
        Ok(request) => request,
        Err(error) => {
            // For a valid request, `HostState::http` counts the call.
            store.data_mut().meter.count_host_call();
            return Err(error);
        }
    };
    let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT);
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
        let (response, driver) = Box::into_pin(sending).await.map_err(ExchangeError::of)?;
        read_response(response, driver, body_bytes_max).await
    };
    // Boxed, because this future would otherwise enlarge the future of every call.
    let result = tokio::time::timeout(timeout, Box::pin(exchange)).await;
    result.unwrap_or_else(|_| {
        let message = format!("the request took longer than {} ms", timeout.as_millis());
        Err(ExchangeError::Timeout(message))
    })
}

/// Reads a response to its end. Polls the driver of its connection meanwhile, because the body arrives only while the driver
/// runs.
async fn read_response(
    response: Response<WasiBody>,
    driver: ConnectionDriver,
    body_bytes_max: usize,
) -> Result<CompleteResponse, ExchangeError> {
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
    Ok(CompleteResponse {
        status: parts.status,
        headers: parts.headers,
        body,
    })
}

async fn read_body(body: WasiBody, bytes_max: usize) -> Result<Vec<u8>, ExchangeError> {
    let (mut body, mut bytes) = (pin!(body), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(ExchangeError::of)?.into_data() else {
            continue;
        };
        if bytes.len().saturating_add(data.len()) > bytes_max {
            let message = format!("the response has more than {}", ByteCount(bytes_max as u64));
            return Err(ExchangeError::TooLarge(message));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}
