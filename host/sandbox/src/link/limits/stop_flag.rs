//! The flag that requests a guest to stop, with the cause.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The reason why the host stops a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum StopCause {
    /// The deadline passed.
    Deadline = 1,
    /// The caller cancelled the call.
    Cancelled = 2,
    /// The guest called the host more often than its limit permits.
    HostCalls = 3,
}

/// A request to stop a guest, shared with the epoch callback of its store. Contains the number of a [`StopCause`], or 0 if no
/// stop is requested.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopFlag(Arc<AtomicU8>);

impl StopFlag {
    /// Requests the stop. Later requests do not change the cause.
    pub(crate) fn raise(&self, cause: StopCause) {
        let _ = self
            .0
            .compare_exchange(0, cause as u8, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Returns the cause of the requested stop, or `None` if the guest may run.
    pub(crate) fn cause(&self) -> Option<StopCause> {
        match self.0.load(Ordering::SeqCst) {
            1 => Some(StopCause::Deadline),
            2 => Some(StopCause::Cancelled),
            3 => Some(StopCause::HostCalls),
            _ => None,
        }
    }
}
