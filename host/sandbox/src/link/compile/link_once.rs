//! A linked component that is compiled and linked once, regardless of the number of calls that wait for it.

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

type LinkResult = Result<Arc<LinkedComponent>, Error>;

/// An attempt to compile and link the component, as a future that several callers can await.
type LinkAttempt = Shared<BoxFuture<'static, LinkResult>>;

/// A linked component that is created when it is first needed.
///
/// Each attempt to compile and link the component runs in a task of its own: a caller that stops waiting neither stops nor
/// restarts the attempt. If an attempt fails, all waiting callers receive its error, and the next call starts another attempt.
#[derive(Default)]
pub(crate) struct LinkOnce {
    /// The component, after an attempt has created it. The task of the attempt stores the component here.
    linked: Arc<OnceLock<Arc<LinkedComponent>>>,
    /// The running attempt, or an attempt that ended while no caller waited for it.
    attempt: Mutex<Option<LinkAttempt>>,
    progress: Arc<CompileProgress>,
}

impl LinkOnce {
    /// Returns the component if an attempt has created it.
    pub(crate) fn get(&self) -> Option<Arc<LinkedComponent>> {
        self.linked.get().cloned()
    }

    /// Returns the component. If it does not exist yet, waits for the running attempt, or starts `link` as a new attempt.
    ///
    /// # Errors
    /// The error of `link`; [`ErrorKind::Internal`] if its future panics; [`ErrorKind::Timeout`] or [`ErrorKind::Cancelled`] if the
    /// limit of `wait` ends the waiting.
    pub(crate) async fn get_or_link<F>(&self, link: impl FnOnce() -> F, wait: WaitLimit<'_>) -> LinkResult
    where
        F: Future<Output = LinkResult> + Send + 'static,
    {
        if let Some(linked) = self.linked.get() {
            return Ok(linked.clone());
        }
        let attempt = self.attempt_or_start(link);
        tokio::select! {
            biased;
            outcome = attempt.clone() => {
                self.remove_attempt(&attempt);
                outcome
            },
            () = wait.cancel.cancelled() => Err(cancelled_before_start()),
            () = tokio::time::sleep(wait.wall_max) => Err(not_compiled_in_time(wait.wall_max)),
        }
    }

    /// Starts `link` unless the component exists or an attempt is running. Does not wait for the attempt.
    pub(crate) fn start<F>(&self, link: impl FnOnce() -> F)
    where
        F: Future<Output = LinkResult> + Send + 'static,
    {
        if self.linked.get().is_none() {
            drop(self.attempt_or_start(link));
        }
    }

    /// Returns the compilation status.
    pub(crate) fn status(&self) -> CompileStatus {
        self.progress.status()
    }

    /// Returns the progress, which `link` and the task of the attempt update.
    pub(crate) fn progress(&self) -> &Arc<CompileProgress> {
        &self.progress
    }

    /// Returns the running attempt, or starts one.
    fn attempt_or_start<F>(&self, link: impl FnOnce() -> F) -> LinkAttempt
    where
        F: Future<Output = LinkResult> + Send + 'static,
    {
        let start_attempt = || {
            self.progress.record_queued();
            let (work, linked, progress) = (link(), self.linked.clone(), self.progress.clone());
            // A `JoinSet` aborts its tasks when it is dropped. So this task is aborted when the plugin is dropped.
            let mut task = JoinSet::new();
            task.spawn(async move {
                // A panic of the future becomes the error of the attempt.
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
            let join = async move {
                task.join_next()
                    .await
                    .unwrap_or_else(|| Ok(Err(ended_unexpectedly(None))))
            };
            join.map(|joined| joined.unwrap_or_else(|error| Err(ended_unexpectedly(Some(error)))))
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

    /// Removes a finished attempt, unless another attempt has replaced it.
    fn remove_attempt(&self, finished: &LinkAttempt) {
        let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        if attempt.as_ref().is_some_and(|current| current.ptr_eq(finished)) {
            *attempt = None;
        }
    }
}

/// The conditions under which a caller stops waiting for an attempt.
pub(crate) struct WaitLimit<'a> {
    /// The maximum time to wait.
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

    fn wait_limit(cancel: &CancellationToken) -> WaitLimit<'_> {
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
        let (once, end_signal, attempt_count) = (LinkOnce::default(), Arc::new(Notify::new()), AtomicUsize::new(0));
        let link = || {
            attempt_count.fetch_add(1, Ordering::SeqCst);
            let end_signal = end_signal.clone();
            async move {
                end_signal.notified().await;
                Err(link_error())
            }
        };
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        for _ in 0..3 {
            let error = once.get_or_link(link, wait_limit(&cancelled)).await.err().unwrap();
            assert_eq!(error.kind, ErrorKind::Cancelled);
        }
        end_signal.notify_one();
        let not_cancelled = CancellationToken::new();
        let error = once.get_or_link(link, wait_limit(&not_cancelled)).await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Unsupported, "the error of the first attempt");
        assert_eq!(attempt_count.load(Ordering::SeqCst), 1);
        end_signal.notify_one();
        once.get_or_link(link, wait_limit(&not_cancelled)).await.err().unwrap();
        assert_eq!(
            attempt_count.load(Ordering::SeqCst),
            2,
            "the call after a failure tries again"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_waits_no_longer_than_its_limit() {
        let once = LinkOnce::default();
        let cancel = CancellationToken::new();
        let error = once
            .get_or_link(std::future::pending, wait_limit(&cancel))
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
            .get_or_link(link, wait_limit(&cancel))
            .await
            .err()
            .unwrap();
        assert_eq!(error.kind, ErrorKind::Internal);
    }
}
