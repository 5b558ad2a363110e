//! Runs work once for all callers that wait for it at the same time.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};

/// Runs work at most once at a time. All callers that wait get the same result. The work continues in the background
/// if all callers have stopped waiting. So a server that starts too slowly for one caller can be ready for the next.
pub(super) struct SingleFlight<T: Clone>(Mutex<Option<Shared<BoxFuture<'static, T>>>>);

impl<T: Clone> Default for SingleFlight<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone + Send + Sync + 'static> SingleFlight<T> {
    /// Returns whether the work is running.
    pub(super) fn is_running(&self) -> bool {
        let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().is_some_and(|work| work.peek().is_none())
    }

    /// Waits for the result of the running work. Starts the work if it is not running. If the task of the work panics or
    /// is aborted, the result is the value that `interrupted` returns.
    pub(super) async fn run<F>(&self, start: impl FnOnce() -> F, interrupted: impl FnOnce() -> T + Send + 'static) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let running = {
            let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match current.as_ref().filter(|work| work.peek().is_none()) {
                Some(work) => work.clone(),
                None => {
                    let task = tokio::spawn(start());
                    let work = async move { task.await.unwrap_or_else(|_| interrupted()) }
                        .boxed()
                        .shared();
                    current.insert(work).clone()
                }
            }
        };
        running.await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn work_runs_once_and_continues_without_its_first_caller() {
        let flight = Arc::new(SingleFlight::<usize>::default());
        let (run_count, release) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let call = || {
            let (flight, run_count, release) = (flight.clone(), run_count.clone(), release.clone());
            async move {
                let work = || async move {
                    release.notified().await;
                    run_count.fetch_add(1, Ordering::Relaxed) + 1
                };
                flight.run(work, || 0).await
            }
        };
        let mut first_caller = Box::pin(call());
        assert!(futures::poll!(&mut first_caller).is_pending());
        drop(first_caller);
        let mut second_caller = Box::pin(call());
        assert!(futures::poll!(&mut second_caller).is_pending());
        release.notify_one();
        assert_eq!(second_caller.await, 1);
        release.notify_one();
        assert_eq!(call().await, 2, "a later call runs the work again");
    }
}
