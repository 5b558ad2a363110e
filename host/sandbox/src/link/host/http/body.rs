//! HTTP bodies. Limits are enforced and secrets are redacted while the bodies stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};
use wasmtime_wasi_http::{Error, WasiBody};

use super::counted_stream::connection_error;
use super::http_budget::HttpBudget;
use crate::grants::authority::Authority;
use crate::grants::redact::StreamMask;

/// The body of a guest's request. It draws on the HTTP budget of the call, and refuses trailers.
pub(super) struct OutgoingBody {
    pub(super) body: WasiBody,
    pub(super) budget: Arc<HttpBudget>,
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            // Trailers could carry headers that the gate forbids.
            if frame.is_trailers() {
                return Poll::Ready(Some(Err(Error::HttpRequestTrailerSectionSize(None))));
            }
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            if let Err(exceeded) = self.budget.take_bytes(bytes) {
                return Poll::Ready(Some(Err(Error::HttpRequestBodySize(Some(exceeded.max)))));
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response to a guest, without secrets. [`CountedStream`](super::counted_stream::CountedStream) counts its bytes.
pub(super) struct IncomingBody {
    body: hyper::body::Incoming,
    /// The authority whose redactor removes secrets from the body.
    authority: Authority,
    /// Masks the secrets, including those that are split between frames.
    mask: StreamMask,
    /// The time limit between two frames.
    between_frames_max: std::time::Duration,
    /// The deadline of the request.
    deadline: Instant,
    /// Expires if no frame arrives in time.
    timer: Pin<Box<Sleep>>,
    has_ended: bool,
}

impl IncomingBody {
    pub(super) fn new(
        body: hyper::body::Incoming,
        authority: Authority,
        between_frames_max: std::time::Duration,
        deadline: Instant,
    ) -> Self {
        let first_frame_deadline = deadline.min(Instant::now() + between_frames_max);
        Self {
            body,
            authority,
            mask: StreamMask::default(),
            between_frames_max,
            deadline,
            timer: Box::pin(sleep_until(first_frame_deadline)),
            has_ended: false,
        }
    }

    /// Ends the body with an error.
    fn fail(&mut self, error: Error) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.has_ended = true;
        Poll::Ready(Some(Err(error)))
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        loop {
            if self.has_ended {
                return Poll::Ready(None);
            }
            let frame = match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(Some(Err(error))) => return self.fail(connection_error(error)),
                Poll::Ready(None) => {
                    self.has_ended = true;
                    let this = &mut *self;
                    let tail = this.mask.finish(&this.authority.redactor);
                    return Poll::Ready((!tail.is_empty()).then(|| Ok(Frame::data(tail))));
                }
                Poll::Pending => {
                    return match self.timer.as_mut().poll(context) {
                        Poll::Ready(()) => self.fail(Error::ConnectionReadTimeout),
                        Poll::Pending => Poll::Pending,
                    };
                }
            };
            let now = Instant::now();
            if now >= self.deadline {
                return self.fail(Error::HttpResponseTimeout);
            }
            let next_frame_deadline = self.deadline.min(now + self.between_frames_max);
            self.timer.as_mut().reset(next_frame_deadline);
            // Trailers are dropped.
            let Ok(data) = frame.into_data() else { continue };
            let this = &mut *self;
            let output = this.mask.push(&this.authority.redactor, data);
            if !output.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(output))));
            }
        }
    }
}
