//! An observer that runs on its own thread and may block.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::{Event, Observer};
use toolwit_core::Origin;

/// An [`Observer`] that calls another observer on a separate thread, so that a slow observer does not block the run.
///
/// The queue is unbounded. The limits of a run limit the number of its events, except for [`Event::Progress`]. The thread ends when
/// the `QueuedObserver` is dropped and the queue is empty, or when the observer panics.
pub struct QueuedObserver {
    queue: Sender<QueueItem>,
}

enum QueueItem {
    Event(Box<(Event, Origin)>),
    /// A request to drop the sender once all earlier events are delivered.
    Flush(Sender<()>),
}

impl QueuedObserver {
    /// Starts the thread that calls `observer`.
    ///
    /// # Errors
    /// [`io::Error`] if the thread cannot be started.
    pub fn new(observer: impl Observer + 'static) -> io::Result<Self> {
        let (queue, items) = channel();
        thread::Builder::new()
            .name("toolwit-observer".to_owned())
            .spawn(move || deliver(&items, &observer))?;
        Ok(Self { queue })
    }

    /// Blocks until the observer has processed all events so far, or has panicked. Do not call this method on a thread of an
    /// async executor.
    pub fn flush(&self) {
        let (sender, receiver) = channel();
        if self.queue.send(QueueItem::Flush(sender)).is_ok() {
            // `recv` always returns an error, because the thread drops the sender instead of sending.
            let _ = receiver.recv();
        }
    }
}

impl Observer for QueuedObserver {
    fn observe(&self, event: &Event, origin: &Origin) {
        // Sending fails only after the observer panicked and its thread ended.
        let _ = self
            .queue
            .send(QueueItem::Event(Box::new((event.clone(), origin.clone()))));
    }
}

fn deliver(items: &Receiver<QueueItem>, observer: &dyn Observer) {
    for item in items {
        match item {
            QueueItem::Event(event_and_origin) => {
                let (event, origin) = *event_and_origin;
                if catch_unwind(AssertUnwindSafe(|| observer.observe(&event, &origin))).is_err() {
                    tracing::warn!("an observer panicked and receives no more events of this conversation");
                    return;
                }
            }
            QueueItem::Flush(sender) => drop(sender),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_slow_observer_does_not_block_and_receives_every_event() {
        let (unblock_sender, unblock_receiver) = channel::<()>();
        let unblock_receiver = Mutex::new(unblock_receiver);
        let received = Arc::new(Mutex::new(Vec::new()));
        let received_by_observer = received.clone();
        let queued = QueuedObserver::new(move |event: &Event, _: &Origin| {
            unblock_receiver.lock().unwrap().recv().ok();
            received_by_observer.lock().unwrap().push(event.clone());
        })
        .unwrap();
        for count in 0..3 {
            queued.observe(&Event::ManyToolsDeclared { count }, &Origin::default());
        }
        assert!(
            received.lock().unwrap().is_empty(),
            "the observer still handles the first event"
        );
        drop(unblock_sender);
        queued.flush();
        assert_eq!(received.lock().unwrap().len(), 3);
    }

    #[test]
    fn flush_does_not_block_after_the_observer_panicked() {
        let queued = QueuedObserver::new(|_: &Event, _: &Origin| panic!("broken")).unwrap();
        queued.observe(&Event::ManyToolsDeclared { count: 1 }, &Origin::default());
        queued.observe(&Event::ManyToolsDeclared { count: 2 }, &Origin::default());
        queued.flush();
    }
}
