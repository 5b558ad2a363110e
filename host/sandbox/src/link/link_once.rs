//! Compiling once, however many calls wait for it.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::compile_status::{CompileStatus, Progress};
use super::linked::Linked;
use toolwit_core::limits::Span;
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};

type Outcome = Result<Arc<Linked>, Error>;
type Making = Shared<BoxFuture<'static, Outcome>>;

/// A linked component that is made by the first call that needs it.
///
/// The work belongs to nobody's call: a caller that gives up neither stops it nor has it done again. A failure is told to
/// those who waited, and the next call tries again.
#[derive(Default)]
pub(crate) struct LinkOnce {
    linked: OnceLock<Arc<Linked>>,
    making: Mutex<Option<Making>>,
    progress: Arc<Progress>,
}

impl LinkOnce {
    /// Returns the component if it was made before.
    pub(crate) fn made_before(&self) -> Option<Arc<Linked>> {
        self.linked.get().cloned()
    }

    /// Waits for the component, and starts to make it when nobody did.
    ///
    /// # Errors
    /// What went wrong in `make`; [`ErrorKind::Timeout`] or [`ErrorKind::Cancelled`] when the caller stops waiting.
    pub(crate) async fn get<F>(&self, make: impl FnOnce() -> F, wait: Wait<'_>) -> Outcome
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        if let Some(linked) = self.linked.get() {
            return Ok(linked.clone());
        }
        let making = self.making(make);
        tokio::select! {
            biased;
            outcome = making.clone() => self.made(&making, outcome),
            () = wait.cancel.cancelled() => Err(cancelled_before()),
            () = tokio::time::sleep(wait.wall_max) => Err(still_compiling(wait.wall_max)),
        }
    }

    /// Starts to make the component when nobody did, and waits for nothing.
    pub(crate) fn start<F>(&self, make: impl FnOnce() -> F)
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        if self.linked.get().is_none() {
            drop(self.making(make));
        }
    }

    /// Returns how far the work is.
    pub(crate) fn status(&self) -> CompileStatus {
        self.progress.status()
    }

    /// Returns what the work tells how far it is.
    pub(crate) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    fn making<F>(&self, make: impl FnOnce() -> F) -> Making
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let start = || {
            self.progress.queued();
            let (work, progress) = (make(), self.progress.clone());
            // A set of one: it ends its task when it is dropped, which it is with the plugin.
            let mut task = JoinSet::new();
            task.spawn(async move {
                // A panic is a failure too, and is told as one.
                let outcome = AssertUnwindSafe(work).catch_unwind().await;
                let outcome = outcome.unwrap_or_else(|_| Err(interrupted(None)));
                progress.ended(outcome.as_ref().err());
                outcome
            });
            let outcome = async move { task.join_next().await.unwrap_or_else(|| Ok(Err(interrupted(None)))) };
            outcome
                .map(|joined| joined.unwrap_or_else(|error| Err(interrupted(Some(error)))))
                .boxed()
                .shared()
        };
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have been made while the lock was waited for.
        if let Some(linked) = self.linked.get() {
            return futures::future::ready(Ok(linked.clone())).boxed().shared();
        }
        // An attempt that failed while nobody waited is not told to whoever comes later.
        if let CompileStatus::Failed(_) = self.progress.status() {
            *making = None;
        }
        making.get_or_insert_with(start).clone()
    }

    /// Keeps what was made, or forgets the attempt that failed.
    fn made(&self, done: &Making, outcome: Outcome) -> Outcome {
        if let Ok(linked) = &outcome {
            self.linked.get_or_init(|| linked.clone());
        }
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if making.as_ref().is_some_and(|current| current.ptr_eq(done)) {
            *making = None;
        }
        outcome
    }
}

/// How long a caller waits.
pub(crate) struct Wait<'a> {
    pub(crate) wall_max: Duration,
    pub(crate) cancel: &'a CancellationToken,
}

/// The call was cancelled before any of its guest's code ran.
pub(crate) fn cancelled_before() -> Error {
    Error::new(
        ErrorKind::Cancelled,
        Phase::Execute,
        "the call was cancelled before it began",
    )
}

fn still_compiling(wall_max: Duration) -> Error {
    let ms = u64::try_from(wall_max.as_millis()).unwrap_or(u64::MAX);
    let message = format!("it is still compiling after {}", Span(wall_max));
    Error::new(ErrorKind::Timeout, Phase::Load, message)
        .with_suggestion("call again later: compiling goes on")
        .with_limit(ExceededLimit::new("load_wall_ms_max", ms, ms))
}

fn interrupted(error: Option<JoinError>) -> Error {
    let told = Error::new(ErrorKind::Internal, Phase::Load, "compiling it was interrupted");
    match error {
        Some(error) => told.with_source(error),
        None => told,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    fn wait(cancel: &CancellationToken) -> Wait<'_> {
        Wait {
            wall_max: Duration::from_secs(60),
            cancel,
        }
    }

    fn broken() -> Error {
        Error::new(ErrorKind::Unsupported, Phase::Load, "it is broken")
    }

    // accept: 117
    #[tokio::test]
    async fn a_caller_that_gives_up_neither_stops_the_work_nor_has_it_done_again() {
        let (once, ready, made) = (LinkOnce::default(), Arc::new(Notify::new()), AtomicUsize::new(0));
        let make = || {
            made.fetch_add(1, Ordering::SeqCst);
            let ready = ready.clone();
            async move {
                ready.notified().await;
                Err(broken())
            }
        };
        let impatient = CancellationToken::new();
        impatient.cancel();
        for _ in 0..3 {
            let error = once.get(make, wait(&impatient)).await.err().unwrap();
            assert_eq!(error.kind, ErrorKind::Cancelled);
        }
        ready.notify_one();
        let patient = CancellationToken::new();
        let error = once.get(make, wait(&patient)).await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Unsupported, "the outcome of the first attempt");
        assert_eq!(made.load(Ordering::SeqCst), 1);
        ready.notify_one();
        once.get(make, wait(&patient)).await.err().unwrap();
        assert_eq!(made.load(Ordering::SeqCst), 2, "after a failure it is tried again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_does_not_wait_longer_than_it_may() {
        let once = LinkOnce::default();
        let cancel = CancellationToken::new();
        let error = once.get(std::future::pending, wait(&cancel)).await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Timeout);
        assert_eq!(error.limit.as_ref().unwrap().max, 60_000);
    }

    #[tokio::test]
    async fn a_panic_becomes_an_error() {
        #[allow(clippy::panic)]
        let make = || async { panic!("no") };
        let cancel = CancellationToken::new();
        let error = LinkOnce::default().get(make, wait(&cancel)).await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Internal);
    }
}
