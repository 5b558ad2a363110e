//! The state of a plugin's machine code.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolwit_core::Error;

/// The state of a plugin's machine code in this process.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum CompileStatus {
    /// It was not needed yet.
    #[default]
    NotStarted,
    /// It waits for a free worker.
    Queued,
    /// It is being loaded from the cache or compiled.
    Compiling {
        /// When a worker started it.
        since: Instant,
    },
    /// It is ready to be called.
    Ready {
        /// How long a worker took.
        took: Duration,
    },
    /// It could not be compiled. The next call tries again.
    Failed(Error),
}

impl CompileStatus {
    /// Returns the state as a word, as tables and JSON show it.
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

/// The state while the work runs.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<CompileStatus>);

impl Progress {
    pub(crate) fn status(&self) -> CompileStatus {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn queued(&self) {
        self.set(CompileStatus::Queued);
    }

    pub(crate) fn started(&self) {
        self.set(CompileStatus::Compiling { since: Instant::now() });
    }

    /// Records the outcome of the work.
    pub(crate) fn ended(&self, error: Option<&Error>) {
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
