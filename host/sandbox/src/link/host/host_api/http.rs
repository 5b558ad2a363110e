//! `toolwit:plugin/http`: a small HTTP client, behind the same gate as `wasi:http`.

use std::time::Duration;

use wasmtime::component::{ComponentType, Lift, Lower};

use super::Context;
use crate::link::host::http::{CompleteResponse, ExchangeError, build_request, collect_headers, exchange};

#[derive(ComponentType, Lift, Lower)]
#[component(record)]
pub(super) struct WitHeader {
    name: String,
    value: String,
}

#[derive(ComponentType, Lift)]
#[component(record)]
pub(super) struct WitRequest {
    method: String,
    url: String,
    headers: Vec<WitHeader>,
    body: Option<Vec<u8>>,
    #[component(name = "timeout-ms")]
    timeout_ms: Option<u32>,
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub(super) struct WitResponse {
    status: u16,
    headers: Vec<WitHeader>,
    body: Vec<u8>,
}

#[derive(ComponentType, Lower)]
#[component(variant)]
pub(super) enum WitHttpError {
    #[component(name = "invalid-request")]
    InvalidRequest(String),
    #[component(name = "denied")]
    Denied(String),
    #[component(name = "limit")]
    Limit(String),
    #[component(name = "failed")]
    Failed(String),
}

/// Sends a request, and reads the response to its end.
pub(super) async fn send(store: &mut Context<'_>, request: WitRequest) -> Result<WitResponse, WitHttpError> {
    let WitRequest {
        method,
        url,
        headers,
        body,
        timeout_ms,
    } = request;
    let headers = collect_headers(headers.into_iter().map(|header| (header.name, header.value)));
    let request = headers.and_then(|headers| build_request(&method, &url, headers, body));
    let timeout = timeout_ms.map(|ms| Duration::from_millis(ms.into()));
    let response = exchange(store, request, timeout).await;
    response.map(WitResponse::from).map_err(WitHttpError::from)
}

impl From<CompleteResponse> for WitResponse {
    fn from(response: CompleteResponse) -> Self {
        let headers = response.headers.iter().map(|(name, value)| WitHeader {
            name: name.as_str().to_owned(),
            value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
        });
        Self {
            status: response.status.as_u16(),
            headers: headers.collect(),
            body: response.body,
        }
    }
}

impl From<ExchangeError> for WitHttpError {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::InvalidRequest(message) => Self::InvalidRequest(message),
            ExchangeError::Denied(_) => Self::Denied("the request is not granted".to_owned()),
            ExchangeError::TooLarge(message) | ExchangeError::Timeout(message) => Self::Limit(message),
            ExchangeError::Failed(message) => Self::Failed(message),
        }
    }
}
