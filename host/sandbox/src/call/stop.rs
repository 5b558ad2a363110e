//! Runs guest code until it ends or must be stopped. The epoch interruption of wasmtime stops a guest that computes. A guest
//! that waits in a host call is stopped by dropping its future.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use crate::link::limits::call_clock::CallClock;
use crate::link::limits::compute_turns::poll_now;
use crate::link::limits::stop_flag::{StopCause, StopFlag};

/// The error of a call whose guest still waited in a host call after it had to stop. The caller must drop the guest's future
/// and the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AbandonedGuest(pub(crate) StopCause);

/// Runs guest code until it ends, passes its deadline, is cancelled, or the host raises the stop flag in a host call.
///
/// The guest is polled when it has its turn to compute. A guest that must stop is polled once more, without a turn. If the guest
/// computes, the epoch interrupts it in that poll and it traps. If its future is still pending, the guest waits in a host call,
/// possibly forever, and this function returns.
///
/// # Errors
/// [`AbandonedGuest`] if the guest's future is still pending. If the epoch stopped the guest, the output is its trap, and the
/// flag has the cause.
pub(crate) async fn run_guest<T>(
    stop: &StopFlag,
    clock: &CallClock<'_>,
    mut guest: Pin<&mut impl Future<Output = T>>,
) -> Result<T, AbandonedGuest> {
    // Most guests end in their first poll, which needs no timer.
    let first_poll = poll_fn(|context| Poll::Ready(clock.turn.poll_guest(guest.as_mut(), context))).await;
    if let Poll::Ready(output) = first_poll {
        return Ok(output);
    }
    Box::pin(run_until_stopped(stop, clock, guest)).await
}

/// Continues a guest that did not end in its first poll.
async fn run_until_stopped<T>(
    stop: &StopFlag,
    clock: &CallClock<'_>,
    mut guest: Pin<&mut impl Future<Output = T>>,
) -> Result<T, AbandonedGuest> {
    let deadline = clock.deadline();
    let run = poll_fn(
        |context| match (clock.turn.poll_guest(guest.as_mut(), context), stop.cause()) {
            (Poll::Ready(output), _) => Poll::Ready(Ok(output)),
            (Poll::Pending, Some(cause)) => Poll::Ready(Err(cause)),
            (Poll::Pending, None) => Poll::Pending,
        },
    );
    let cause = tokio::select! {
        biased;
        outcome = run => match outcome {
            Ok(output) => return Ok(output),
            Err(cause) => cause,
        },
        () = clock.cancel_token().cancelled() => StopCause::Cancelled,
        () = deadline.wait() => StopCause::Deadline,
    };
    stop.raise(cause);
    let last_poll = poll_fn(|context| match poll_now(guest.as_mut(), context) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => Poll::Ready(Err(AbandonedGuest(stop.cause().unwrap_or(cause)))),
    });
    last_poll.await
}
