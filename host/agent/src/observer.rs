//! Whoever wants to know what happens in a conversation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::event::Event;

/// Watches a conversation.
///
/// It is called in line, in order, while the run waits: an observer that may take long goes into a [`Queued`](super::Queued).
/// One that panics is not called again, and the run goes on. A closure is an observer.
pub trait Observer: Send + Sync {
    /// Takes one event.
    fn observe(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

/// The observers of one conversation.
#[derive(Clone, Default)]
pub(super) struct Observers {
    all: Vec<Arc<Watch>>,
}

struct Watch {
    observer: Arc<dyn Observer>,
    broken: AtomicBool,
}

impl Observers {
    pub(super) fn add(&mut self, observer: Arc<dyn Observer>) {
        self.all.push(Arc::new(Watch {
            observer,
            broken: AtomicBool::new(false),
        }));
    }

    pub(super) fn emit(&self, event: &Event) {
        for watch in &self.all {
            watch.tell(event);
        }
    }
}

impl Watch {
    fn tell(&self, event: &Event) {
        if self.broken.load(Ordering::Relaxed) {
            return;
        }
        if catch_unwind(AssertUnwindSafe(|| self.observer.observe(event))).is_err() {
            self.broken.store(true, Ordering::Relaxed);
            tracing::warn!("an observer panicked and hears no more of this conversation");
        }
    }
}
