//! Reading the bodies of requests.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;

/// Maximum size of the body of a request, in bytes.
const BODY_BYTES_MAX: usize = 4 << 20;

/// Maximum time in which a body arrives.
const BODY_WALL_MAX: Duration = Duration::from_secs(30);

/// The reason why a body was not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    TooLarge,
    TooSlow,
    Broken,
}

/// Reads a body within its limits.
///
/// # Errors
/// If it exceeds one of them, or the connection ends.
pub(super) async fn read(body: Incoming) -> Result<Bytes, BodyError> {
    let limited = Limited::new(body, BODY_BYTES_MAX).collect();
    match tokio::time::timeout(BODY_WALL_MAX, limited).await {
        Err(_) => Err(BodyError::TooSlow),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(BodyError::TooLarge),
        Ok(Err(_)) => Err(BodyError::Broken),
    }
}
