//! A linked component that is created once, regardless of the number of calls that wait for it.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::linked_component::LinkedComponent;
use super::status::{CompileProgress, CompileStatus};
use toolwit_core::limits::Span;
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};

type Outcome = Result<Arc<LinkedComponent>, Error>;
type Attempt = Shared<BoxFuture<'static, Outcome>>;

/// A linked component that is created when it is first needed.
///
/// Each attempt to compile and link the component runs in a task of its own: a caller that stops waiting neither stops nor
/// restarts it. All waiting callers receive the error of a failed attempt, and the next call makes another attempt.
#[derive(Default)]
pub(crate) struct LinkOnce {
    /// The component, once an attempt has created it. The task of the attempt stores it.
    linked: Arc<OnceLock<Arc<LinkedComponent>>>,
    /// The running attempt, or one that ended while no caller waited for it.
    attempt: Mutex<Option<Attempt>>,
    progress: Arc<CompileProgress>,
}

impl LinkOnce {
    /// Returns the component if an attempt has created it.
    pub(crate) fn get(&self) -> Option<Arc<LinkedComponent>> {
        self.linked.get().cloned()
    }

    /// Waits for the component. Starts `link` unless an attempt is running.
    ///
    /// # Errors
    /// The error of `link`; [`ErrorKind::Internal`] if `link` panics; [`ErrorKind::Timeout`] or [`ErrorKind::Cancelled`] if the
    /// caller stops waiting.
    pub(crate) async fn get_or_link<F>(&self, link: impl FnOnce() -> F, wait: WaitLimit<'_>) -> Outcome
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        if let Some(linked) = self.linked.get() {
            return Ok(linked.clone());
        }
        let attempt = self.attempt_or_start(link);
        tokio::select! {
            biased;
            outcome = attempt.clone() => {
                self.remove(&attempt);
                outcome
            },
            () = wait.cancel.cancelled() => Err(cancelled_before_start()),
            () = tokio::time::sleep(wait.wall_max) => Err(not_compiled_in_time(wait.wall_max)),
        }
    }

    /// Starts `link` unless an attempt is running, without waiting.
    pub(crate) fn start<F>(&self, link: impl FnOnce() -> F)
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        if self.linked.get().is_none() {
            drop(self.attempt_or_start(link));
        }
    }

    /// Returns the compilation status.
    pub(crate) fn status(&self) -> CompileStatus {
        self.progress.status()
    }

    /// Returns the progress, which the attempt updates.
    pub(crate) fn progress(&self) -> &Arc<CompileProgress> {
        &self.progress
    }

    /// Returns the running attempt, or starts one.
    fn attempt_or_start<F>(&self, link: impl FnOnce() -> F) -> Attempt
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let start_attempt = || {
            self.progress.record_queued();
            let (work, linked, progress) = (link(), self.linked.clone(), self.progress.clone());
            // A `JoinSet` aborts its tasks when it is dropped, so dropping the plugin aborts this task.
            let mut task = JoinSet::new();
            task.spawn(async move {
                // A panic is an error of the attempt.
                let outcome = AssertUnwindSafe(work).catch_unwind().await;
                let outcome = outcome.unwrap_or_else(|_| Err(ended_unexpectedly(None)));
                // The task stores the component itself, because there may be no caller that waits for the attempt. The
                // component is stored before the status reports success.
                if let Ok(component) = &outcome {
                    linked.get_or_init(|| component.clone());
                }
                progress.record_end(outcome.as_ref().err());
                outcome
            });
            let outcome = async move {
                task.join_next()
                    .await
                    .unwrap_or_else(|| Ok(Err(ended_unexpectedly(None))))
            };
            outcome
                .map(|joined| joined.unwrap_or_else(|error| Err(ended_unexpectedly(Some(error)))))
                .boxed()
                .shared()
        };
        let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        // Another call may have created the component while this one waited for the lock.
        if let Some(linked) = self.linked.get() {
            return futures::future::ready(Ok(linked.clone())).boxed().shared();
        }
        // An attempt that failed while no caller waited is still stored. A later caller makes another attempt instead of
        // receiving that error.
        if let CompileStatus::Failed(_) = self.progress.status() {
            *attempt = None;
        }
        attempt.get_or_insert_with(start_attempt).clone()
    }

    /// Removes a finished attempt.
    fn remove(&self, finished: &Attempt) {
        let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        if attempt.as_ref().is_some_and(|current| current.ptr_eq(finished)) {
            *attempt = None;
        }
    }
}

/// The conditions under which a caller stops waiting.
pub(crate) struct WaitLimit<'a> {
    pub(crate) wall_max: Duration,
    pub(crate) cancel: &'a CancellationToken,
}

/// Creates the error of a call that was cancelled before guest code ran.
pub(crate) fn cancelled_before_start() -> Error {
    Error::new(
        ErrorKind::Cancelled,
        Phase::Execute,
        "the call was cancelled before it started",
    )
}

fn not_compiled_in_time(wall_max: Duration) -> Error {
    let ms = u64::try_from(wall_max.as_millis()).unwrap_or(u64::MAX);
    let message = format!("it is not compiled after {}", Span(wall_max));
    Error::new(ErrorKind::Timeout, Phase::Load, message)
        .with_suggestion("call again later: compiling continues")
        .with_limit(ExceededLimit::new("load_wall_max", ms, ms))
}

fn ended_unexpectedly(cause: Option<JoinError>) -> Error {
    let error = Error::new(ErrorKind::Internal, Phase::Load, "compiling ended unexpectedly");
    match cause {
        Some(cause) => error.with_source(cause),
        None => error,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    fn wait(cancel: &CancellationToken) -> WaitLimit<'_> {
        WaitLimit {
            wall_max: Duration::from_secs(60),
            cancel,
        }
    }

    fn link_error() -> Error {
        Error::new(ErrorKind::Unsupported, Phase::Load, "it is broken")
    }

    // accept: 117
    #[tokio::test]
    async fn a_caller_that_stops_waiting_neither_stops_nor_restarts_the_work() {
        let (once, may_end, attempts) = (LinkOnce::default(), Arc::new(Notify::new()), AtomicUsize::new(0));
        let link = || {
            attempts.fetch_add(1, Ordering::SeqCst);
            let may_end = may_end.clone();
            async move {
                may_end.notified().await;
                Err(link_error())
            }
        };
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        for _ in 0..3 {
            let error = once.get_or_link(link, wait(&cancelled)).await.err().unwrap();
            assert_eq!(error.kind, ErrorKind::Cancelled);
        }
        may_end.notify_one();
        let not_cancelled = CancellationToken::new();
        let error = once.get_or_link(link, wait(&not_cancelled)).await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Unsupported, "the outcome of the first attempt");
        assert_eq!(attempts.load(Ordering::SeqCst), 1);
        may_end.notify_one();
        once.get_or_link(link, wait(&not_cancelled)).await.err().unwrap();
        assert_eq!(
            attempts.load(Ordering::SeqCst),
            2,
            "the call after a failure tries again"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_waits_no_longer_than_its_limit() {
        let once = LinkOnce::default();
        let cancel = CancellationToken::new();
        let error = once
            .get_or_link(std::future::pending, wait(&cancel))
            .await
            .err()
            .unwrap();
        assert_eq!(error.kind, ErrorKind::Timeout);
        assert_eq!(error.limit.as_ref().unwrap().max, 60_000);
    }

    #[tokio::test]
    async fn a_panic_becomes_an_error() {
        #[allow(clippy::panic)]
        let link = || async { panic!("no") };
        let cancel = CancellationToken::new();
        let error = LinkOnce::default()
            .get_or_link(link, wait(&cancel))
            .await
            .err()
            .unwrap();
        assert_eq!(error.kind, ErrorKind::Internal);
    }
}
