//! Observers of a conversation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Event;

/// Receives the events of a conversation.
///
/// The run calls observers synchronously and in order. Wrap an observer that may block in a
/// [`QueuedObserver`](super::QueuedObserver). An observer that panics is not called again, and the run continues. A closure is
/// an observer.
pub trait Observer: Send + Sync {
    /// Receives one event.
    fn observe(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

/// The observers of one conversation.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    all: Vec<Arc<GuardedObserver>>,
}

/// A wrapper that stops calling an observer after a panic.
struct GuardedObserver {
    observer: Arc<dyn Observer>,
    has_panicked: AtomicBool,
}

impl Observers {
    pub(crate) fn add(&mut self, observer: Arc<dyn Observer>) {
        self.all.push(Arc::new(GuardedObserver {
            observer,
            has_panicked: AtomicBool::new(false),
        }));
    }

    pub(crate) fn emit(&self, event: &Event) {
        for observer in &self.all {
            observer.emit(event);
        }
    }
}

impl GuardedObserver {
    fn emit(&self, event: &Event) {
        if self.has_panicked.load(Ordering::Relaxed) {
            return;
        }
        if catch_unwind(AssertUnwindSafe(|| self.observer.observe(event))).is_err() {
            self.has_panicked.store(true, Ordering::Relaxed);
            tracing::warn!("an observer panicked and receives no more events of this conversation");
        }
    }
}
