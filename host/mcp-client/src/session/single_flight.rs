//! Work that several callers wait for, and that runs once.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};

/// Runs work at most once at a time. The work continues in the background if all callers have stopped waiting: a
/// server that starts too slowly for one search is available to the next search.
pub(super) struct SingleFlight<T: Clone>(Mutex<Option<Shared<BoxFuture<'static, T>>>>);

impl<T: Clone> Default for SingleFlight<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone + Send + Sync + 'static> SingleFlight<T> {
    /// Waits for the work that is running, or starts it. If the work panics or is aborted, the result is the value that
    /// `lost` returns.
    pub(super) async fn run<F>(&self, start: impl FnOnce() -> F, lost: impl FnOnce() -> T + Send + 'static) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let running = {
            let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match current.as_ref().filter(|work| work.peek().is_none()) {
                Some(work) => work.clone(),
                None => {
                    let task = tokio::spawn(start());
                    let work = async move { task.await.unwrap_or_else(|_| lost()) }.boxed().shared();
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
    async fn work_runs_once_and_survives_its_caller() {
        let flight = Arc::new(SingleFlight::<usize>::default());
        let (runs, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let call = || {
            let (flight, runs, go) = (flight.clone(), runs.clone(), go.clone());
            async move {
                let work = || async move {
                    go.notified().await;
                    runs.fetch_add(1, Ordering::Relaxed) + 1
                };
                flight.run(work, || 0).await
            }
        };
        let mut first = Box::pin(call());
        assert!(futures::poll!(&mut first).is_pending());
        drop(first);
        let mut second = Box::pin(call());
        assert!(futures::poll!(&mut second).is_pending());
        go.notify_one();
        assert_eq!(second.await, 1);
        go.notify_one();
        assert_eq!(call().await, 2, "it runs again");
    }
}
