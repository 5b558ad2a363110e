//! Reads the bodies of requests, within limits.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Incoming};

use toolwit::limits::MCP_REQUEST_PARTS_MAX;
use toolwit::tool::text::json_part_count;

/// Maximum size of the body of a request, in bytes.
const BODY_BYTES_MAX: usize = 4 << 20;

/// Maximum time in which the complete body must arrive.
const BODY_WALL_MAX: Duration = Duration::from_secs(30);

/// The reason why a body was not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    TooLarge,
    /// The body has more than [`MCP_REQUEST_PARTS_MAX`] JSON values and names.
    TooManyParts,
    TooSlow,
    /// The connection failed.
    Broken,
}

/// Returns the maximum size in bytes of a body that is not read yet. This is the declared length of the body, or
/// [`BODY_BYTES_MAX`] if no length is declared or the length is greater.
pub(super) fn size_max(body: &Incoming) -> usize {
    let declared = body.size_hint().exact();
    let declared = declared.and_then(|bytes| usize::try_from(bytes).ok());
    declared.map_or(BODY_BYTES_MAX, |bytes| bytes.min(BODY_BYTES_MAX))
}

/// Reads a body within its limits.
///
/// # Errors
/// If the body exceeds the limit on size, time, or JSON values and names, or if the connection fails.
pub(super) async fn read(body: Incoming) -> Result<Bytes, BodyError> {
    let limited = Limited::new(body, BODY_BYTES_MAX).collect();
    match tokio::time::timeout(BODY_WALL_MAX, limited).await {
        Err(_) => Err(BodyError::TooSlow),
        Ok(Ok(body)) => {
            let body = body.to_bytes();
            // Parsed values take far more memory than their text.
            if json_part_count(&body) > MCP_REQUEST_PARTS_MAX {
                return Err(BodyError::TooManyParts);
            }
            Ok(body)
        }
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(BodyError::TooLarge),
        Ok(Err(_)) => Err(BodyError::Broken),
    }
}
