//! Stopping a guest: by the epoch while it computes, by dropping the call while it waits in the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a guest that was told to stop may take to reach its next epoch check before its call is dropped. A guest
/// that computes needs one tick; one that waits in the host would need for ever.
const GRACE: Duration = Duration::from_millis(20);

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

/// Runs guest code until it ends by itself, passes its deadline or is cancelled.
///
/// # Errors
/// [`Abandoned`] when it had to be dropped. When it ended by the epoch, its own trap is returned, and the flag says why.
pub(crate) async fn run_guest<T>(
    stop: &StopFlag,
    deadline: Instant,
    cancel: &CancellationToken,
    guest: impl Future<Output = T>,
) -> Result<T, Abandoned> {
    let mut guest = std::pin::pin!(guest);
    let cause = tokio::select! {
        biased;
        output = &mut guest => return Ok(output),
        () = cancel.cancelled() => StopCause::Cancelled,
        () = tokio::time::sleep_until(deadline) => StopCause::Deadline,
    };
    stop.raise(cause);
    tokio::time::timeout(GRACE, guest)
        .await
        .map_err(|_| Abandoned(stop.cause().unwrap_or(cause)))
}
