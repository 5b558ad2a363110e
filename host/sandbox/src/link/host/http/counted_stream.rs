//! A connection that counts the bytes that the host receives.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wasmtime_wasi_http::Error;

use super::http_budget::HttpBudget;
use crate::link::limits::nested_budget::BudgetExceeded;

/// A connection that charges every received byte to the HTTP budget of a call. The bytes of TLS, of informational responses and of
/// the framing of a body count too.
pub(super) struct CountedStream<S> {
    stream: S,
    budget: Arc<HttpBudget>,
}

impl<S> CountedStream<S> {
    pub(super) fn new(stream: S, budget: Arc<HttpBudget>) -> Self {
        Self { stream, budget }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let bytes_before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buf))?;
        let received_bytes = buf.filled().len() - bytes_before;
        Poll::Ready(self.budget.take_bytes(received_bytes).map_err(io::Error::other))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Converts the error of a connection. If its cause is an exceeded budget, returns the error of a response that is too large.
pub(super) fn connection_error(error: hyper::Error) -> Error {
    let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
    let exceeded = causes
        .filter_map(|cause| cause.downcast_ref::<io::Error>()?.get_ref())
        .find_map(|cause| cause.downcast_ref::<BudgetExceeded>());
    match exceeded {
        Some(exceeded) => Error::HttpResponseBodySize(Some(exceeded.max)),
        None => Error::from(error),
    }
}
