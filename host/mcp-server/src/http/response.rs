//! Responses of the HTTP server that do not come from the MCP service, and the tracking of pending requests.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, SizeHint};
use serde::Serialize;

use super::connections::BusyConnection;
use crate::open_streams::OpenStream;
use crate::pending::PendingRequest;
use toolwit::tool::DeferredWork;

/// A response whose body has any type.
pub(super) type HttpResponse = Response<BoxBody<Bytes, Infallible>>;

/// Maximum size of a piece of a body that is passed to the connection, in bytes. The connection buffers a few pieces. The
/// memory of the other pieces counts until the client has read the pieces before them.
const PIECE_BYTES_MAX: usize = 32 << 10;

/// The state of a response whose request counts as pending until the response has been sent.
pub(super) struct PendingResponse {
    pub(super) request: PendingRequest,
    /// Prevents that another connection replaces the connection of the response.
    pub(super) connection: BusyConnection,
    /// Counts the response as open in its session. `None` if the response has no session.
    pub(super) stream: Option<OpenStream>,
    /// The work that the call defers until it is answered.
    pub(super) deferred_work: DeferredWork,
    /// How long the session keeps the answer after it was sent. Zero if the answer is not kept.
    pub(super) retention: Duration,
}

/// The body of a response. Its request counts as pending until the body is dropped. If the session keeps the answer, the
/// memory of the answer stays reserved for the time of `retention` after that.
struct PendingBody {
    body: BoxBody<Bytes, Infallible>,
    /// The part of the last frame of `body` that is not passed on yet.
    rest: Bytes,
    request: Option<PendingRequest>,
    _connection: BusyConnection,
    /// Counts the response as open in its session until the body is dropped.
    _stream: Option<OpenStream>,
    /// The number of bytes of the body that were sent.
    sent_bytes: usize,
    deferred_work: DeferredWork,
    retention: Duration,
}

impl PendingBody {
    /// Returns the next piece of the rest. A piece of a larger rest is a copy, because a slice would keep all of its memory.
    fn next_piece(&mut self) -> Bytes {
        let piece = if self.rest.len() <= PIECE_BYTES_MAX {
            std::mem::take(&mut self.rest)
        } else {
            Bytes::copy_from_slice(&self.rest.split_to(PIECE_BYTES_MAX))
        };
        self.sent_bytes = self.sent_bytes.saturating_add(piece.len());
        piece
    }
}

impl Body for PendingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(self.next_piece()))));
        }
        let polled = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(polled.map(|Ok(frame)| {
            Ok(match frame.into_data() {
                Ok(data) => {
                    self.rest = data;
                    Frame::data(self.next_piece())
                }
                Err(trailers) => trailers,
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest_bytes = self.rest.len() as u64;
        match hint.exact() {
            Some(bytes) => hint.set_exact(bytes + rest_bytes),
            None => hint.set_lower(hint.lower() + rest_bytes),
        }
        hint
    }
}

impl Drop for PendingBody {
    fn drop(&mut self) {
        if let Some(request) = self.request.take()
            && !self.retention.is_zero()
        {
            request.hold_answer(self.sent_bytes, self.retention);
        }
        let deferred_work = std::mem::take(&mut self.deferred_work);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // The connection drops the body before it sends the last piece. The client would wait for the work.
            runtime.spawn(async move { deferred_work.run() });
        }
    }
}

impl PendingResponse {
    /// Returns a response whose request counts as pending until the response has been sent. The memory of the answer then
    /// stays reserved for the time for which the session keeps the answer.
    pub(super) fn track(self, response: HttpResponse) -> HttpResponse {
        response.map(|body| {
            let body = PendingBody {
                body,
                rest: Bytes::new(),
                request: Some(self.request),
                _connection: self.connection,
                _stream: self.stream,
                sent_bytes: 0,
                deferred_work: self.deferred_work,
                retention: self.retention,
            };
            body.boxed()
        })
    }
}

/// Returns a plain-text response.
pub(super) fn text(status: StatusCode, text: impl Into<String>) -> HttpResponse {
    with_content_type(status, "text/plain; charset=utf-8", text.into())
}

/// Returns a response with metrics in the Prometheus text format.
pub(super) fn metrics(text: String) -> HttpResponse {
    with_content_type(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text)
}

/// Returns a response with JSON.
pub(super) fn json(value: &impl Serialize) -> HttpResponse {
    let text = serde_json::to_string(value).unwrap_or_default();
    with_content_type(StatusCode::OK, "application/json", text)
}

/// Sets a header. Does nothing if the value is not valid for a header.
pub(super) fn with_header(mut response: HttpResponse, name: HeaderName, value: &str) -> HttpResponse {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

fn with_content_type(status: StatusCode, content_type: &'static str, body: String) -> HttpResponse {
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
