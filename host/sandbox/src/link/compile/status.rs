//! The compilation status of a plugin.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolwit_core::Error;

/// The compilation status of a plugin in this process.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum CompileStatus {
    /// The machine code has not been needed yet.
    #[default]
    NotStarted,
    /// Cached machine code is being looked up, or the component waits for a permit to compile.
    Queued,
    /// The component is being compiled or linked.
    Compiling {
        /// The time at which compiling started. If the machine code was cached, the time at which linking started.
        since: Instant,
    },
    /// The component is ready to be called.
    Ready {
        /// The time from the start of compiling or linking until the component was ready.
        took: Duration,
    },
    /// Compiling or linking failed. The next call tries again.
    Failed(Error),
}

impl CompileStatus {
    /// Returns the status as a word for tables and JSON.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::NotStarted => "not-compiled",
            Self::Queued => "queued",
            Self::Compiling { .. } => "compiling",
            Self::Ready { .. } => "compiled",
            Self::Failed(_) => "failed",
        }
    }
}

/// The compilation status of a plugin, shared with the task that compiles its component.
#[derive(Debug, Default)]
pub(crate) struct CompileProgress(Mutex<CompileStatus>);

impl CompileProgress {
    pub(crate) fn status(&self) -> CompileStatus {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn record_queued(&self) {
        self.set(CompileStatus::Queued);
    }

    pub(crate) fn record_start(&self) {
        self.set(CompileStatus::Compiling { since: Instant::now() });
    }

    /// Records the end of an attempt. `error` is the error of a failed attempt, or `None` if the component is ready.
    pub(crate) fn record_end(&self, error: Option<&Error>) {
        let took = match self.status() {
            CompileStatus::Compiling { since } => since.elapsed(),
            _ => Duration::ZERO,
        };
        self.set(match error {
            None => CompileStatus::Ready { took },
            Some(error) => CompileStatus::Failed(error.clone()),
        });
    }

    fn set(&self, status: CompileStatus) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }
}
