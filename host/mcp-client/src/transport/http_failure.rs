//! Failed HTTP requests.

use std::time::Duration;

use http::StatusCode;

use super::message;
use super::oauth::TokenFailure;
use toolwit_core::limits::{ByteCount, MCP_MESSAGE_BYTES_MAX};

/// The reason why an HTTP request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum HttpFailure {
    #[error("the request failed: {0}")]
    Request(String),
    #[error("{0}")]
    Token(TokenFailure),
    #[error("the server responded with status {status}{}{beginning}", if beginning.is_empty() { "" } else { ": " })]
    Status { status: StatusCode, beginning: String },
    #[error("the server redirects to another address, and redirects are not followed")]
    Redirect,
    #[error("the response is larger than {}", ByteCount(MCP_MESSAGE_BYTES_MAX as u64))]
    TooLarge,
    #[error("the response cannot be used: {0}")]
    Message(#[from] message::MessageError),
    #[error("the server did not respond within {} s", .0.as_secs())]
    Timeout(Duration),
}
