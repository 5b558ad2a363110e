//! Stopping a guest: by the epoch while it computes, by dropping the call while it waits in the host.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Why a guest is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum StopCause {
    /// The deadline passed.
    Deadline = 1,
    /// The caller cancelled.
    Cancelled = 2,
    /// It called the host too often.
    HostCalls = 3,
}

/// Tells the epoch callback of a store, which owns the guest, that the guest is to be stopped, and why.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopFlag(Arc<AtomicU8>);

impl StopFlag {
    /// Asks the guest to stop. The first cause stays.
    pub(crate) fn raise(&self, cause: StopCause) {
        let _ = self
            .0
            .compare_exchange(0, cause as u8, Ordering::SeqCst, Ordering::SeqCst);
    }

    pub(crate) fn cause(&self) -> Option<StopCause> {
        match self.0.load(Ordering::SeqCst) {
            1 => Some(StopCause::Deadline),
            2 => Some(StopCause::Cancelled),
            3 => Some(StopCause::HostCalls),
            _ => None,
        }
    }
}

/// The call was dropped while the guest waited in the host; its store must be dropped too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Abandoned(pub(crate) StopCause);

/// Runs guest code until it ends by itself, passes its deadline, is cancelled, or raises the flag by what it does.
///
/// A guest that is told to stop is polled once more. One that computes meets the epoch in that poll and traps; one that
/// is still pending afterwards waits in the host, and would for ever.
///
/// # Errors
/// [`Abandoned`] when it had to be dropped. When it ended by the epoch, its own trap is returned, and the flag says why.
pub(crate) async fn run_guest<T>(
    stop: &StopFlag,
    deadline: Instant,
    cancel: &CancellationToken,
    mut guest: Pin<&mut impl Future<Output = T>>,
) -> Result<T, Abandoned> {
    // Most guests end before they have to wait for anything: no clock is set for those.
    let begun = poll_fn(|context| Poll::Ready(guest.as_mut().poll(context))).await;
    if let Poll::Ready(output) = begun {
        return Ok(output);
    }
    Box::pin(run_until_stopped(stop, deadline, cancel, guest)).await
}

/// Goes on with a guest that waits or computes for longer.
async fn run_until_stopped<T>(
    stop: &StopFlag,
    deadline: Instant,
    cancel: &CancellationToken,
    mut guest: Pin<&mut impl Future<Output = T>>,
) -> Result<T, Abandoned> {
    let run = poll_fn(|context| match (guest.as_mut().poll(context), stop.cause()) {
        (Poll::Ready(output), _) => Poll::Ready(Ok(output)),
        (Poll::Pending, Some(cause)) => Poll::Ready(Err(cause)),
        (Poll::Pending, None) => Poll::Pending,
    });
    let cause = tokio::select! {
        biased;
        ended = run => match ended {
            Ok(output) => return Ok(output),
            Err(cause) => cause,
        },
        () = cancel.cancelled() => StopCause::Cancelled,
        () = tokio::time::sleep_until(deadline) => StopCause::Deadline,
    };
    stop.raise(cause);
    let last = poll_fn(|context| match guest.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => Poll::Ready(Err(Abandoned(stop.cause().unwrap_or(cause)))),
    });
    last.await
}
