//! Failed HTTP requests.

use std::borrow::Cow;
use std::time::Duration;

use http::StatusCode;
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::{Value, json};

use super::failure_code::{AUTHORIZATION_REQUIRED, NOT_PROCESSED, SESSION_LOST, TRANSPORT_FAILED};
use super::http_client;
use super::message;
use super::oauth::TokenFailure;
use toolwit_core::limits::{ByteCount, MCP_MESSAGE_BYTES_MAX};

/// The reason why an HTTP request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum HttpFailure {
    /// The connection failed, so the request was not sent.
    #[error("the request failed: {0}")]
    Connect(String),
    /// The request failed in another way. The server may have received it.
    #[error("the request failed: {0}")]
    Request(String),
    /// No token for the request could be obtained, or the server refused each token.
    #[error("{0}")]
    Token(TokenFailure),
    /// The server responded with an error status. `body_start` is the beginning of the body, without secrets.
    #[error("the server responded with status {status}{}{body_start}", if body_start.is_empty() { "" } else { ": " })]
    Status { status: StatusCode, body_start: String },
    /// The server redirects to another origin, or too often. `location` is its address, without secrets.
    #[error(
        "the server redirects to `{location}`, which is not followed; if you trust this address, configure it as the `url`"
    )]
    Redirect { location: String },
    #[error("the server sent a compressed body, although none was accepted")]
    Compressed,
    #[error("the response is larger than {}", ByteCount(MCP_MESSAGE_BYTES_MAX as u64))]
    TooLarge,
    #[error("the response cannot be used: {0}")]
    Message(#[from] message::MessageError),
    #[error("the server did not respond within {} s", .0.as_secs())]
    Timeout(Duration),
}

/// Returns the failure of a request, described by its innermost cause.
pub(super) fn request_failed(error: reqwest::Error) -> StreamableHttpError<HttpFailure> {
    let cause = http_client::innermost_cause(&error);
    StreamableHttpError::Client(if error.is_connect() {
        HttpFailure::Connect(cause)
    } else {
        HttpFailure::Request(cause)
    })
}

/// Returns whether the server may have processed a request that failed.
pub(super) fn may_have_been_processed(failure: &StreamableHttpError<HttpFailure>) -> bool {
    match failure {
        StreamableHttpError::SessionExpired
        | StreamableHttpError::AuthRequired(_)
        | StreamableHttpError::Client(HttpFailure::Connect(_) | HttpFailure::Token(_)) => false,
        // A status of 4xx means that the server refused the request. The exception is 408, which a gateway may send
        // while the server still works on the request.
        StreamableHttpError::Client(HttpFailure::Status { status, .. }) => {
            !status.is_client_error() || *status == StatusCode::REQUEST_TIMEOUT
        }
        _ => true,
    }
}

/// Returns the text of the JSON-RPC error for a failed request.
pub(super) fn error_message(id: &RequestId, failure: &StreamableHttpError<HttpFailure>) -> String {
    let (code, message, data): (_, Cow<'_, str>, _) = match failure {
        StreamableHttpError::SessionExpired => (SESSION_LOST, "the server has ended the session".into(), Value::Null),
        StreamableHttpError::AuthRequired(_) => {
            (NOT_PROCESSED, "the server requires authorization".into(), Value::Null)
        }
        StreamableHttpError::Client(HttpFailure::Token(TokenFailure {
            why,
            login_scopes: Some(scopes),
        })) => (AUTHORIZATION_REQUIRED, why.into(), json!(scopes)),
        _ if may_have_been_processed(failure) => (TRANSPORT_FAILED, failure.to_string().into(), Value::Null),
        _ => (NOT_PROCESSED, failure.to_string().into(), Value::Null),
    };
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_failure(status: StatusCode) -> StreamableHttpError<HttpFailure> {
        let body_start = String::new();
        StreamableHttpError::Client(HttpFailure::Status { status, body_start })
    }

    #[test]
    fn a_request_that_was_not_sent_or_was_refused_is_not_processed() {
        let connect = HttpFailure::Connect("connection refused".to_owned());
        assert!(!may_have_been_processed(&StreamableHttpError::Client(connect)));
        assert!(!may_have_been_processed(&StreamableHttpError::SessionExpired));
        assert!(!may_have_been_processed(&status_failure(StatusCode::PAYLOAD_TOO_LARGE)));
    }

    #[test]
    fn a_request_that_was_sent_may_have_been_processed_without_a_usable_response() {
        let cut_off = HttpFailure::Request("connection reset".to_owned());
        assert!(may_have_been_processed(&StreamableHttpError::Client(cut_off)));
        let timeout = HttpFailure::Timeout(Duration::from_secs(1));
        assert!(may_have_been_processed(&StreamableHttpError::Client(timeout)));
        assert!(may_have_been_processed(&StreamableHttpError::Client(
            HttpFailure::TooLarge
        )));
        for status in [StatusCode::BAD_GATEWAY, StatusCode::REQUEST_TIMEOUT] {
            assert!(may_have_been_processed(&status_failure(status)), "{status}");
        }
    }
}
