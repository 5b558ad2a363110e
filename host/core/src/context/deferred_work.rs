//! Work of a call that is deferred until the answer has been sent to the client.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::ToolContext;

/// Work of a call that is deferred until the answer has been sent, so that the client does not wait for the work. An example
/// is clearing the memory of a plugin instance.
///
/// A server adds a value of this type to the [`ToolContext`] of a call, and calls [`run`](Self::run) after it has sent the
/// answer. If the context has no `DeferredWork`, a tool does the work before it returns.
///
/// The work runs on a thread of the runtime, and must not block it. Clones share the work. When the last clone is dropped,
/// work that has not begun is dropped without running.
#[derive(Clone, Default)]
pub struct DeferredWork {
    queue: Arc<Mutex<WorkQueue>>,
}

#[derive(Default)]
struct WorkQueue {
    /// Whether the answer has been sent.
    is_answer_sent: bool,
    /// The work in the order in which it was deferred.
    slots: Vec<Arc<WorkSlot>>,
}

type Work = Box<dyn FnOnce() + Send>;

/// A slot for one piece of work. It is `None` after the work has begun.
type WorkSlot = Mutex<Option<Work>>;

/// A handle to one piece of deferred work. The handle does not keep the work alive.
#[derive(Clone, Debug)]
pub struct DeferredWorkHandle(Weak<WorkSlot>);

impl DeferredWork {
    /// Creates an empty queue of work.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the `DeferredWork` of a context, if it has one.
    #[must_use]
    pub fn of(context: &ToolContext) -> Option<&Self> {
        context.extension()
    }

    /// Defers work until the answer has been sent. If the answer has already been sent, runs the work immediately and returns
    /// `None`.
    pub fn defer(&self, work: impl FnOnce() + Send + 'static) -> Option<DeferredWorkHandle> {
        let mut queue = self.lock();
        if queue.is_answer_sent {
            drop(queue);
            work();
            return None;
        }
        let slot: Arc<WorkSlot> = Arc::new(Mutex::new(Some(Box::new(work))));
        let handle = DeferredWorkHandle(Arc::downgrade(&slot));
        queue.slots.push(slot);
        Some(handle)
    }

    /// Runs the deferred work sequentially. The server calls this method after it has sent the answer. After this call,
    /// [`defer`](Self::defer) runs further work immediately.
    pub fn run(&self) {
        let slots = {
            let mut queue = self.lock();
            queue.is_answer_sent = true;
            std::mem::take(&mut queue.slots)
        };
        slots.iter().for_each(|slot| run_slot(slot));
    }

    fn lock(&self) -> MutexGuard<'_, WorkQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeferredWorkHandle {
    /// Runs the work immediately, without waiting for the answer, unless the work has begun or was dropped.
    pub fn run(&self) {
        if let Some(slot) = self.0.upgrade() {
            run_slot(&slot);
        }
    }

    /// Returns whether the work has begun or was dropped.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.0.upgrade().is_none_or(|slot| lock_slot(&slot).is_none())
    }
}

impl fmt::Debug for DeferredWork {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.lock();
        formatter
            .debug_struct("DeferredWork")
            .field("is_answer_sent", &queue.is_answer_sent)
            .field("slots", &queue.slots.len())
            .finish()
    }
}

/// Runs the work of a slot, unless it has begun.
fn run_slot(slot: &WorkSlot) {
    let work = lock_slot(slot).take();
    if let Some(work) = work {
        work();
    }
}

fn lock_slot(slot: &WorkSlot) -> MutexGuard<'_, Option<Work>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn defer(deferred_work: &DeferredWork, run_count: &Arc<AtomicUsize>) -> Option<DeferredWorkHandle> {
        let run_count = run_count.clone();
        deferred_work.defer(move || {
            run_count.fetch_add(1, Ordering::Relaxed);
        })
    }

    #[test]
    fn work_runs_once_after_the_answer_and_later_work_runs_immediately() {
        let (deferred_work, run_count) = (DeferredWork::new(), Arc::default());
        let handle = defer(&deferred_work, &run_count).unwrap();
        assert!(run_count.load(Ordering::Relaxed) == 0 && !handle.has_begun());
        deferred_work.clone().run();
        deferred_work.run();
        handle.run();
        assert_eq!(run_count.load(Ordering::Relaxed), 1);
        assert!(handle.has_begun());
        assert!(defer(&deferred_work, &run_count).is_none());
        assert_eq!(run_count.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn work_can_run_before_the_answer() {
        let (deferred_work, run_count) = (DeferredWork::new(), Arc::default());
        defer(&deferred_work, &run_count).unwrap().run();
        assert_eq!(run_count.load(Ordering::Relaxed), 1);
        deferred_work.run();
        assert_eq!(run_count.load(Ordering::Relaxed), 1, "the work does not run again");
    }

    #[test]
    fn work_is_dropped_with_the_last_clone() {
        let (deferred_work, held_value) = (DeferredWork::new(), Arc::new(()));
        let captured_value = held_value.clone();
        let handle = deferred_work.defer(move || drop(captured_value)).unwrap();
        let clone = deferred_work.clone();
        drop(deferred_work);
        assert_eq!(Arc::strong_count(&held_value), 2);
        drop(clone);
        assert_eq!(Arc::strong_count(&held_value), 1);
        assert!(handle.has_begun());
    }
}
