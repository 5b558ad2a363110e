//! Work that is left until the answer to a call has been delivered.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::future::BoxFuture;

use super::ToolContext;

/// Work that a tool leaves until the answer to its call has been delivered, such as clearing the memory of an instance, so
/// that the receiver does not wait for it.
///
/// A server adds a value to the [`ToolContext`] of a call, and calls [`deliver`](Self::deliver) after it has sent the answer.
/// In a context without it, a tool spawns a task for such work. A task is slower than work on the thread that has sent the
/// answer, because it wakes another thread.
///
/// Clones share the work. When the last of them is dropped, work that has not begun is dropped too.
#[derive(Clone, Default)]
pub struct AfterAnswer {
    state: Arc<Mutex<AnswerState>>,
}

#[derive(Default)]
struct AnswerState {
    is_delivered: bool,
    work: Vec<Arc<WorkSlot>>,
}

/// The work of one call, until it begins.
type WorkSlot = Mutex<Option<BoxFuture<'static, ()>>>;

/// A handle on work that was left. It does not keep the work.
#[derive(Clone, Debug)]
pub struct LeftWork(Weak<WorkSlot>);

impl AfterAnswer {
    /// Returns a value without work.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the value of a context.
    #[must_use]
    pub fn of(context: &ToolContext) -> Option<&Self> {
        context.extension()
    }

    /// Leaves work until the answer is delivered.
    ///
    /// # Errors
    /// The work, if the answer has been delivered already.
    pub fn leave(&self, work: BoxFuture<'static, ()>) -> Result<LeftWork, BoxFuture<'static, ()>> {
        let mut state = self.lock();
        if state.is_delivered {
            return Err(work);
        }
        let slot = Arc::new(Mutex::new(Some(work)));
        let left = LeftWork(Arc::downgrade(&slot));
        state.work.push(slot);
        Ok(left)
    }

    /// Does the work, one after the other. Work that is left afterwards is returned to the tool that leaves it.
    pub async fn deliver(&self) {
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

    fn lock(&self) -> MutexGuard<'_, AnswerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeftWork {
    /// Takes the work, to do it before the answer is delivered. Returns `None` if it has begun or was dropped.
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

impl fmt::Debug for AfterAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        formatter
            .debug_struct("AfterAnswer")
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

    /// Leaves work that counts, and returns its handle.
    fn leave(after: &AfterAnswer, done: &Arc<AtomicUsize>) -> Option<LeftWork> {
        let done = done.clone();
        let work = Box::pin(async move {
            done.fetch_add(1, Ordering::Relaxed);
        });
        after.leave(work).ok()
    }

    #[tokio::test]
    async fn work_is_done_once_when_the_answer_is_delivered_and_refused_afterwards() {
        let (after, done) = (AfterAnswer::new(), Arc::default());
        let left = leave(&after, &done).unwrap();
        assert_eq!(done.load(Ordering::Relaxed), 0);
        after.clone().deliver().await;
        after.deliver().await;
        assert_eq!(done.load(Ordering::Relaxed), 1);
        assert!(left.has_begun() && left.take().is_none());
        assert!(leave(&after, &done).is_none());
    }

    #[tokio::test]
    async fn work_can_be_taken_before_the_answer() {
        let (after, done) = (AfterAnswer::new(), Arc::default());
        let left = leave(&after, &done).unwrap();
        assert!(!left.has_begun());
        left.take().unwrap().await;
        after.deliver().await;
        assert_eq!(done.load(Ordering::Relaxed), 1, "it is not done again");
    }

    #[test]
    fn work_is_dropped_with_the_last_clone() {
        let (after, held) = (AfterAnswer::new(), Arc::new(()));
        let in_work = held.clone();
        let left = after.leave(Box::pin(async move { drop(in_work) })).ok().unwrap();
        let clone = after.clone();
        drop(after);
        assert_eq!(Arc::strong_count(&held), 2);
        drop(clone);
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(left.has_begun() && left.take().is_none());
    }
}
