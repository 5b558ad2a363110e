//! HTTP requests to authorization servers, and for the metadata of MCP servers.

use std::time::Duration;

use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{RequestBuilder, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::challenge::Challenge;
use crate::transport::http_client::{self, innermost_cause};
use crate::value::{Redaction, check_address};

/// The maximum size of a response, in bytes.
const DOCUMENT_BYTES_MAX: usize = 64 << 10;

/// The maximum time of a request, its response included.
const REQUEST_WALL_MAX: Duration = Duration::from_secs(15);

/// Requests a JSON document.
///
/// # Errors
/// The outer error is the reason why there is no usable response. The inner error is the status of a response that is
/// not a success.
pub(super) async fn get_json<T: DeserializeOwned>(
    url: &Url,
    redaction: &Redaction,
) -> Result<Result<T, StatusCode>, String> {
    let client = client(url, redaction)?;
    let (status, body) = send(client.get(url.clone()), url, redaction).await?;
    if !status.is_success() {
        return Ok(Err(status));
    }
    let document = serde_json::from_slice(&body);
    document.map(Ok).map_err(|_| {
        let url = redaction.quoted(url.as_str());
        format!("{url} is not a valid metadata document")
    })
}

/// Returns whether an error status means that a document does not exist. All other error statuses can be temporary.
pub(super) fn means_absent(status: StatusCode) -> bool {
    status.is_client_error() && !matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
}

/// Returns the error message for a response with an error status.
pub(super) fn status_error(url: &Url, status: StatusCode, redaction: &Redaction) -> String {
    let url = redaction.quoted(url.as_str());
    format!("{url} responded with the status {}", status.as_u16())
}

/// Posts a form. `basic_credentials` are the user name and the password for HTTP Basic authentication, if the request
/// uses it. Returns whether the status is a success, and the body of the response.
pub(super) async fn post_form(
    url: &Url,
    form: String,
    basic_credentials: Option<(String, String)>,
    redaction: &Redaction,
) -> Result<(bool, Vec<u8>), String> {
    let mut request = client(url, redaction)?
        .post(url.clone())
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form);
    if let Some((name, password)) = basic_credentials {
        request = request.basic_auth(name, Some(password));
    }
    let (status, body) = send(request, url, redaction).await?;
    Ok((status.is_success(), body))
}

/// Posts a JSON document. Returns whether the status is a success, and the body of the response.
pub(crate) async fn post_json(url: &Url, document: &Value, redaction: &Redaction) -> Result<(bool, Vec<u8>), String> {
    let request = client(url, redaction)?;
    let request = request.post(url.clone()).header(CONTENT_TYPE, "application/json");
    let (status, body) = send(request.body(document.to_string()), url, redaction).await?;
    Ok((status.is_success(), body))
}

/// Posts a message without a token to a server. Returns the challenge of the response, or `None` if the server does not
/// require a token.
pub(crate) async fn request_challenge(
    url: &Url,
    message: &Value,
    headers: HeaderMap,
    redaction: &Redaction,
) -> Result<Option<Challenge>, String> {
    let request = client(url, redaction)?.post(url.clone()).headers(headers);
    let request = request
        .header(CONTENT_TYPE, "application/json")
        .body(message.to_string());
    let response = async { request.send().await.map_err(|error| innermost_cause(&error)) };
    let response = with_time_limit(response, url, redaction).await?;
    Ok(Challenge::from_response(response.status(), response.headers()))
}

fn client(url: &Url, redaction: &Redaction) -> Result<reqwest::Client, String> {
    check_address(url).map_err(|why| format!("{} is refused: {why}", redaction.quoted(url.as_str())))?;
    http_client::client(url.scheme() == "https")
}

async fn send(request: RequestBuilder, url: &Url, redaction: &Redaction) -> Result<(StatusCode, Vec<u8>), String> {
    let request = request.header(ACCEPT, "application/json");
    let exchange = async {
        let response = request.send().await.map_err(|error| innermost_cause(&error))?;
        if response.status().is_redirection() {
            return Err("it redirects, and redirects are not followed".to_owned());
        }
        Ok((response.status(), read_body(response).await?))
    };
    with_time_limit(exchange, url, redaction).await
}

async fn with_time_limit<T>(
    exchange: impl Future<Output = Result<T, String>>,
    url: &Url,
    redaction: &Redaction,
) -> Result<T, String> {
    let response = tokio::time::timeout(REQUEST_WALL_MAX, exchange).await;
    let response = response.unwrap_or_else(|_| Err(format!("no response within {} s", REQUEST_WALL_MAX.as_secs())));
    response.map_err(|why| format!("the request to {} failed: {why}", redaction.quoted(url.as_str())))
}

async fn read_body(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| innermost_cause(&error))? {
        if body.len() + chunk.len() > DOCUMENT_BYTES_MAX {
            return Err(format!("the response is larger than {} KiB", DOCUMENT_BYTES_MAX >> 10));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
