//! Batches of messages, which only the revision 2025-03-26 has.

use std::convert::Infallible;

use bytes::Bytes;
use futures::stream::{self, SelectAll};
use futures::{FutureExt, StreamExt};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use rmcp::model::ErrorCode;
use serde_json::Value;

use super::response::{self, HttpResponse};
use super::router::Router;
use super::rpc_error;
use crate::message::{Incoming, batch_items, parse, refusal};
use crate::pending::PendingRequest;

/// The header with the revision of a session. Clients of 2025-03-26 do not send it.
const VERSION_HEADER: &str = "mcp-protocol-version";

/// The revision that has batches.
const BATCH_REVISION: &str = "2025-03-26";

/// Maximum number of messages of a batch. Each one counts as a request.
const MESSAGES_MAX: usize = 64;

/// Returns the messages of a body, if the body is a batch and the headers allow one.
pub(super) fn items(headers: &HeaderMap, body: &[u8]) -> Option<Vec<Vec<u8>>> {
    let version = headers.get(VERSION_HEADER);
    let has_batches = version.is_none_or(|version| version == BATCH_REVISION);
    if has_batches { batch_items(body) } else { None }
}

/// Returns whether a batch has too many messages.
pub(super) fn is_too_long(items: &[Vec<u8>]) -> bool {
    items.len() > MESSAGES_MAX
}

/// Passes each message of a batch to the MCP service, and returns a stream of all answers, in the order in which they arrive.
/// Holds the reservations until the stream ends.
pub(super) async fn answer(
    items: Vec<Vec<u8>>,
    reserved: Vec<PendingRequest>,
    parts: &Parts,
    router: &Router,
) -> HttpResponse {
    // A session stops while nobody reads one of its streams. So all streams are read together, also while a message is passed on.
    let (mut streams, mut early) = (SelectAll::new(), Vec::new());
    for item in items {
        let is_beginning = matches!(parse_method(&item).as_deref(), Some("initialize"));
        let response = match parse(&item) {
            Incoming::Ignored => continue,
            Incoming::Refused(answer) => rpc_error::refused(&answer),
            Incoming::Message { .. } if is_beginning => {
                let message = "`initialize` cannot be a part of a batch";
                rpc_error::refused(&refusal(Value::Null, ErrorCode::INVALID_REQUEST, message))
            }
            Incoming::Message { .. } => {
                let mut handled = router.handle(parts.clone(), item.into()).boxed();
                loop {
                    tokio::select! {
                        response = &mut handled => break response,
                        Some(frame) = streams.next(), if !streams.is_empty() => early.push(frame),
                    }
                }
            }
        };
        let response = rpc_error::from_text(response).await;
        if response.status() != StatusCode::ACCEPTED {
            streams.push(BodyStream::new(events(response).await));
        }
    }
    if streams.is_empty() && early.is_empty() {
        let mut accepted = response::text(StatusCode::ACCEPTED, "");
        accepted.headers_mut().remove(CONTENT_TYPE);
        return accepted;
    }
    let events = stream::iter(early).chain(streams).map(move |frame| {
        let _held = &reserved;
        frame
    });
    let mut response = HttpResponse::new(BodyExt::boxed(StreamBody::new(events)));
    let event_stream = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, event_stream);
    response
}

/// Returns the events of a response, which is a stream of events or one message.
async fn events(response: HttpResponse) -> BoxBody<Bytes, Infallible> {
    let is_message = rpc_error::is_json(response.headers());
    let body = response.into_body();
    if !is_message {
        return body;
    }
    match body.collect().await {
        Ok(message) => Full::new(rpc_error::event(&message.to_bytes())).boxed(),
        Err(never) => match never {},
    }
}

fn parse_method(message: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(message).ok()?;
    message["method"].as_str().map(str::to_owned)
}
