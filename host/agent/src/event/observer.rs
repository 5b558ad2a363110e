//! Observers of a conversation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Event;
use toolwit_core::Origin;

/// Receives the events of a conversation.
///
/// Each event comes with its origin: the process and, for an agent, the call in which the agent runs. A conversation with
/// [`nested_events`](crate::ConversationBuilder::nested_events) sends the events of its agents to its observers too.
///
/// The run calls observers synchronously and in order. Wrap an observer that may block in a
/// [`QueuedObserver`](super::QueuedObserver). An observer that panics receives no more events of the conversation, and the run
/// continues. A closure is an observer.
pub trait Observer: Send + Sync {
    /// Receives one event.
    fn observe(&self, event: &Event, origin: &Origin);
}

impl<F: Fn(&Event, &Origin) + Send + Sync> Observer for F {
    fn observe(&self, event: &Event, origin: &Origin) {
        self(event, origin);
    }
}

/// The observers of one conversation, and the origin of its events.
#[derive(Clone)]
pub(crate) struct Observers {
    origin: Arc<Origin>,
    observers: Vec<Arc<IsolatedObserver>>,
}

/// The observers of an outer conversation. They also receive the events of the agents inside it. A tool context contains this
/// type as an extension.
pub(crate) struct OuterConversationObservers(pub(crate) Observers);

/// A wrapper that stops calling an observer after a panic.
struct IsolatedObserver {
    observer: Arc<dyn Observer>,
    has_panicked: AtomicBool,
}

impl Observers {
    /// Combines the observers of a conversation with those of the outer conversation.
    pub(crate) fn new(
        origin: &Origin,
        observers: Vec<Arc<dyn Observer>>,
        outer: Option<&OuterConversationObservers>,
    ) -> Self {
        let isolated = observers.into_iter().map(|observer| {
            Arc::new(IsolatedObserver {
                observer,
                has_panicked: AtomicBool::new(false),
            })
        });
        let outer = outer.into_iter().flat_map(|outer| outer.0.observers.iter().cloned());
        Self {
            origin: Arc::new(origin.clone()),
            observers: isolated.chain(outer).collect(),
        }
    }

    pub(crate) fn emit(&self, event: &Event) {
        for observer in &self.observers {
            observer.emit(event, &self.origin);
        }
    }

    /// Returns the first of these observers together with those of the outer conversation, for the agents of a conversation
    /// that forwards no events to its other observers.
    pub(crate) fn first_and_outer(&self, outer: Option<&OuterConversationObservers>) -> Self {
        let outer = outer.into_iter().flat_map(|outer| outer.0.observers.iter().cloned());
        Self {
            origin: self.origin.clone(),
            observers: self.observers.iter().take(1).cloned().chain(outer).collect(),
        }
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl IsolatedObserver {
    fn emit(&self, event: &Event, origin: &Origin) {
        if self.has_panicked.load(Ordering::Relaxed) {
            return;
        }
        if catch_unwind(AssertUnwindSafe(|| self.observer.observe(event, origin))).is_err() {
            self.has_panicked.store(true, Ordering::Relaxed);
            tracing::warn!("an observer panicked and receives no more events of this conversation");
        }
    }
}
