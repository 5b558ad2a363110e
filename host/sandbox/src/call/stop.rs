//! Runs guest code until it ends or must be stopped. The epoch interruption of wasmtime stops a guest that computes. A guest
//! that waits in a host call is stopped by dropping its future.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use tokio_util::sync::CancellationToken;

use crate::link::limits::call_clock::Deadline;
use crate::link::limits::stop_flag::{StopCause, StopFlag};

/// The error of a call whose guest still waited in a host call after it had to stop. The caller must drop the guest's future
/// and the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AbandonedGuest(pub(crate) StopCause);

/// Runs guest code until it ends, passes its deadline, is cancelled, or the host raises the stop flag in a host call.
///
/// A guest that must stop is polled once more. If the guest computes, the epoch interrupts it in that poll and it traps. If
/// its future is still pending, the guest waits in a host call, possibly forever, and this function returns.
///
/// # Errors
/// [`AbandonedGuest`] if the guest's future is still pending. If the epoch stopped the guest, the output is its trap, and the
/// flag has the cause.
pub(crate) async fn run_guest<T>(
    stop: &StopFlag,
    deadline: &Deadline,
    cancel: &CancellationToken,
    mut guest: Pin<&mut impl Future<Output = T>>,
) -> Result<T, AbandonedGuest> {
    // Most guests end in their first poll, which needs no timer.
    let first_poll = poll_fn(|context| Poll::Ready(guest.as_mut().poll(context))).await;
    if let Poll::Ready(output) = first_poll {
        return Ok(output);
    }
    Box::pin(run_until_stopped(stop, deadline, cancel, guest)).await
}

/// Continues a guest that did not end in its first poll.
async fn run_until_stopped<T>(
    stop: &StopFlag,
    deadline: &Deadline,
    cancel: &CancellationToken,
    mut guest: Pin<&mut impl Future<Output = T>>,
) -> Result<T, AbandonedGuest> {
    let run = poll_fn(|context| match (guest.as_mut().poll(context), stop.cause()) {
        (Poll::Ready(output), _) => Poll::Ready(Ok(output)),
        (Poll::Pending, Some(cause)) => Poll::Ready(Err(cause)),
        (Poll::Pending, None) => Poll::Pending,
    });
    let cause = tokio::select! {
        biased;
        outcome = run => match outcome {
            Ok(output) => return Ok(output),
            Err(cause) => cause,
        },
        () = cancel.cancelled() => StopCause::Cancelled,
        () = deadline.wait() => StopCause::Deadline,
    };
    stop.raise(cause);
    let last_poll = poll_fn(|context| match guest.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => Poll::Ready(Err(AbandonedGuest(stop.cause().unwrap_or(cause)))),
    });
    last_poll.await
}
