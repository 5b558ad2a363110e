//! An observer that may take its time.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::event::Event;
use super::observer::Observer;

/// Calls an observer on a thread of its own, so that a slow one never holds up a run.
///
/// Events wait in a queue, which the limits of a run bound. The thread ends when the value is dropped and the queue is empty.
pub struct Queued {
    queue: Sender<Item>,
}

enum Item {
    Event(Box<Event>),
    Flush(Sender<()>),
}

impl Queued {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system's, when it has no thread to give.
    pub fn new(observer: impl Observer + 'static) -> io::Result<Self> {
        let (queue, items) = channel();
        thread::Builder::new()
            .name("toolwit-observer".to_owned())
            .spawn(move || deliver(&items, &observer))?;
        Ok(Self { queue })
    }

    /// Waits until the observer has taken everything that happened so far. Blocks: not for an executor's thread.
    pub fn flush(&self) {
        let (done, waiting) = channel();
        if self.queue.send(Item::Flush(done)).is_ok() {
            // An error means that the thread is gone, and there is nothing to wait for.
            let _ = waiting.recv();
        }
    }
}

impl Observer for Queued {
    fn observe(&self, event: &Event) {
        // The thread ends early only when the observer panicked; it hears no more then.
        let _ = self.queue.send(Item::Event(Box::new(event.clone())));
    }
}

fn deliver(items: &Receiver<Item>, observer: &dyn Observer) {
    for item in items {
        match item {
            Item::Event(event) => {
                if catch_unwind(AssertUnwindSafe(|| observer.observe(&event))).is_err() {
                    tracing::warn!("an observer panicked and hears no more of this conversation");
                    return;
                }
            }
            Item::Flush(done) => drop(done),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_slow_observer_holds_nobody_up_and_misses_nothing() {
        let (open, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        let queued = Queued::new(move |event: &Event| {
            gate.lock().unwrap().recv().ok();
            sink.lock().unwrap().push(event.clone());
        })
        .unwrap();
        for count in 0..3 {
            queued.observe(&Event::ToolsMany { count });
        }
        assert!(seen.lock().unwrap().is_empty(), "it is still at the first event");
        drop(open);
        queued.flush();
        assert_eq!(seen.lock().unwrap().len(), 3);
    }

    #[test]
    fn an_observer_that_panicked_blocks_nobody() {
        let queued = Queued::new(|_: &Event| panic!("broken")).unwrap();
        queued.observe(&Event::ToolsMany { count: 1 });
        queued.observe(&Event::ToolsMany { count: 2 });
        queued.flush();
    }
}
