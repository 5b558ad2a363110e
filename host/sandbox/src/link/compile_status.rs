//! How far the machine code of a plugin is.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolwit_core::Error;

/// How far the machine code of a plugin is.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum CompileStatus {
    /// Nobody needed it yet.
    #[default]
    NotStarted,
    /// It waits for a free worker.
    Queued,
    /// It is being mapped or compiled, since then.
    Compiling {
        /// When a worker took it up.
        since: Instant,
    },
    /// It can be called at once.
    Ready {
        /// How long a worker took.
        took: Duration,
    },
    /// It could not be made. The next call tries again.
    Failed(Error),
}

impl CompileStatus {
    /// Returns a word for it.
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

/// The status, as the work goes on.
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

    /// Notes how the work ended.
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
