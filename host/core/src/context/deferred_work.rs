//! Work of a call that is deferred until its answer has been delivered.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::future::BoxFuture;

use super::ToolContext;

/// Work of a call that is deferred until the answer has been delivered, so that the receiver does not wait for it. An example
/// is clearing the memory of an instance.
///
/// A server adds a value of this type to the [`ToolContext`] of a call, and calls [`run`](Self::run) after it has sent the
/// answer. Without such a value, a tool spawns a task for the work, which is slower, because it wakes another thread.
///
/// Clones share the work. When the last of them is dropped, work that has not begun is dropped too.
#[derive(Clone, Default)]
pub struct DeferredWork {
    state: Arc<Mutex<DeferredState>>,
}

#[derive(Default)]
struct DeferredState {
    /// Whether the answer has been delivered.
    is_delivered: bool,
    /// The work in the order in which it was deferred.
    work: Vec<Arc<WorkSlot>>,
}

/// One piece of work, or `None` after it has begun.
type WorkSlot = Mutex<Option<BoxFuture<'static, ()>>>;

/// A handle to one piece of deferred work. It does not keep the work alive.
#[derive(Clone, Debug)]
pub struct DeferredWorkHandle(Weak<WorkSlot>);

impl DeferredWork {
    /// Creates a value without work.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the value in a context, if the server defers work.
    #[must_use]
    pub fn of(context: &ToolContext) -> Option<&Self> {
        context.extension()
    }

    /// Defers work until the answer has been delivered.
    ///
    /// # Errors
    /// Returns the work if the answer has been delivered already.
    pub fn defer(&self, work: BoxFuture<'static, ()>) -> Result<DeferredWorkHandle, BoxFuture<'static, ()>> {
        let mut state = self.lock();
        if state.is_delivered {
            return Err(work);
        }
        let slot = Arc::new(Mutex::new(Some(work)));
        let handle = DeferredWorkHandle(Arc::downgrade(&slot));
        state.work.push(slot);
        Ok(handle)
    }

    /// Runs the deferred work sequentially, after the answer has been delivered. From now on, [`defer`](Self::defer) defers no
    /// further work.
    pub async fn run(&self) {
        let work = {
            let mut state = self.lock();
            state.is_delivered = true;
            std::mem::take(&mut state.work)
        };
        for slot in work {
            if let Some(work) = take(&slot) {
                work.await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, DeferredState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeferredWorkHandle {
    /// Takes the work, so that it can begin before the answer is delivered. Returns `None` if it has begun or was dropped.
    #[must_use]
    pub fn take(&self) -> Option<BoxFuture<'static, ()>> {
        take(&*self.0.upgrade()?)
    }

    /// Returns whether the work has begun or was dropped.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.0.upgrade().is_none_or(|slot| lock(&slot).is_none())
    }
}

impl fmt::Debug for DeferredWork {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        formatter
            .debug_struct("DeferredWork")
            .field("is_delivered", &state.is_delivered)
            .field("work", &state.work.len())
            .finish()
    }
}

fn take(slot: &WorkSlot) -> Option<BoxFuture<'static, ()>> {
    lock(slot).take()
}

fn lock(slot: &WorkSlot) -> MutexGuard<'_, Option<BoxFuture<'static, ()>>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Defers work that counts, and returns its handle.
    fn defer(deferred_work: &DeferredWork, done: &Arc<AtomicUsize>) -> Option<DeferredWorkHandle> {
        let done = done.clone();
        let work = Box::pin(async move {
            done.fetch_add(1, Ordering::Relaxed);
        });
        deferred_work.defer(work).ok()
    }

    #[tokio::test]
    async fn work_is_done_once_when_the_answer_is_delivered_and_refused_afterwards() {
        let (deferred_work, done) = (DeferredWork::new(), Arc::default());
        let handle = defer(&deferred_work, &done).unwrap();
        assert_eq!(done.load(Ordering::Relaxed), 0);
        deferred_work.clone().run().await;
        deferred_work.run().await;
        assert_eq!(done.load(Ordering::Relaxed), 1);
        assert!(handle.has_begun() && handle.take().is_none());
        assert!(defer(&deferred_work, &done).is_none());
    }

    #[tokio::test]
    async fn work_can_be_taken_before_the_answer() {
        let (deferred_work, done) = (DeferredWork::new(), Arc::default());
        let handle = defer(&deferred_work, &done).unwrap();
        assert!(!handle.has_begun());
        handle.take().unwrap().await;
        deferred_work.run().await;
        assert_eq!(done.load(Ordering::Relaxed), 1, "it is not done again");
    }

    #[test]
    fn work_is_dropped_with_the_last_clone() {
        let (deferred_work, held) = (DeferredWork::new(), Arc::new(()));
        let in_work = held.clone();
        let handle = deferred_work
            .defer(Box::pin(async move { drop(in_work) }))
            .ok()
            .unwrap();
        let clone = deferred_work.clone();
        drop(deferred_work);
        assert_eq!(Arc::strong_count(&held), 2);
        drop(clone);
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(handle.has_begun() && handle.take().is_none());
    }
}
