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

use crate::open_streams::OpenStream;
use crate::pending::PendingRequest;

/// A response whose body has any type.
pub(super) type HttpResponse = Response<BoxBody<Bytes, Infallible>>;

/// The body of a response. Its request counts as pending until the body is dropped. If the session keeps the answer, the
/// memory of the answer stays reserved for the time of `retention` after that.
struct PendingBody {
    body: BoxBody<Bytes, Infallible>,
    request: Option<PendingRequest>,
    /// Counts the response as open in its session until the body is dropped.
    _stream: Option<OpenStream>,
    /// The number of bytes of the body that were sent.
    sent_bytes: usize,
    /// How long the session keeps the answer after the body is dropped. Zero if the answer is not kept.
    retention: Duration,
}

impl Body for PendingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let polled = ready!(Pin::new(&mut self.body).poll_frame(context));
        let data = polled.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        self.sent_bytes = self.sent_bytes.saturating_add(data.map_or(0, Bytes::len));
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for PendingBody {
    fn drop(&mut self) {
        if let Some(request) = self.request.take()
            && !self.retention.is_zero()
        {
            request.hold_answer(self.sent_bytes, self.retention);
        }
    }
}

/// Returns a response whose request counts as pending until the response has been sent. The memory of the answer then
/// stays reserved for `retention`, the time for which the session keeps the answer.
pub(super) fn track_pending(
    response: HttpResponse,
    request: PendingRequest,
    stream: Option<OpenStream>,
    retention: Duration,
) -> HttpResponse {
    response.map(|body| {
        let body = PendingBody {
            body,
            request: Some(request),
            _stream: stream,
            sent_bytes: 0,
            retention,
        };
        body.boxed()
    })
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
