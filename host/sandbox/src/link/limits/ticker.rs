//! The thread that increments the epoch of all engines while a guest runs, so that guests can be interrupted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wasmtime::EngineWeak;

use toolwit_core::{Error, ErrorKind, Phase};

/// The interval between two increments of the epoch. At each increment, a running guest yields or is stopped.
const TICK: Duration = Duration::from_millis(1);

/// The number of ticks without a running guest after which the thread parks. The thread does not park at once, because idle
/// ticks are cheap, and waking the thread delays a call.
const LINGER_TICKS: u32 = 50;

/// Increments the epoch of every engine while a guest runs.
pub(crate) struct Ticker {
    shared: Arc<TickerState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct TickerState {
    /// The number of live guards, which is the number of calls that run guests.
    guard_count: AtomicUsize,
    is_parked: AtomicBool,
    is_stopped: AtomicBool,
    /// Weak references, so that the thread does not keep engines alive.
    engines: Mutex<Vec<EngineWeak>>,
}

/// A guard that keeps the ticker running until it is dropped.
pub(crate) struct TickerGuard {
    ticker: Arc<Ticker>,
}

impl Ticker {
    /// Starts the thread of the ticker.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if the system cannot create a thread.
    pub(crate) fn start() -> Result<Arc<Self>, Error> {
        let shared = Arc::new(TickerState::default());
        let thread_state = shared.clone();
        let thread = thread::Builder::new()
            .name("toolwit-epoch".to_owned())
            .spawn(move || thread_state.tick_until_stopped())
            .map_err(|error| {
                Error::new(
                    ErrorKind::Internal,
                    Phase::Load,
                    "the thread that interrupts guests could not be started",
                )
                .with_source(error)
            })?;
        Ok(Arc::new(Self {
            shared,
            thread: Some(thread),
        }))
    }

    /// Adds an engine whose epoch is incremented.
    pub(crate) fn add_engine(&self, engine: EngineWeak) {
        self.shared
            .engines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(engine);
    }

    /// Keeps the ticker running until the returned guard is dropped.
    pub(crate) fn keep_running(self: &Arc<Self>) -> TickerGuard {
        self.shared.guard_count.fetch_add(1, Ordering::SeqCst);
        if self.shared.is_parked.load(Ordering::SeqCst) {
            self.unpark();
        }
        TickerGuard { ticker: self.clone() }
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for TickerGuard {
    fn drop(&mut self) {
        self.ticker.shared.guard_count.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        self.unpark();
        if let Some(thread) = self.thread.take() {
            // The result is ignored, because a panic of the thread would need no handling here.
            let _ = thread.join();
        }
    }
}

impl TickerState {
    fn tick_until_stopped(&self) {
        let mut idle_ticks = 0;
        while !self.is_stopped.load(Ordering::SeqCst) {
            if self.guard_count.load(Ordering::SeqCst) > 0 {
                idle_ticks = 0;
            } else if idle_ticks < LINGER_TICKS {
                idle_ticks += 1;
            } else {
                self.park_while_idle();
                idle_ticks = 0;
            }
            thread::park_timeout(TICK);
            for engine in self.engines.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                if let Some(engine) = engine.upgrade() {
                    engine.increment_epoch();
                }
            }
        }
    }

    /// Parks until a guest runs or the ticker is dropped. `is_parked` is set before `guard_count` is read, whereas
    /// [`Ticker::keep_running`] increments `guard_count` before it reads `is_parked`. So the start of a guest always wakes the
    /// thread.
    fn park_while_idle(&self) {
        self.is_parked.store(true, Ordering::SeqCst);
        while self.guard_count.load(Ordering::SeqCst) == 0 && !self.is_stopped.load(Ordering::SeqCst) {
            thread::park();
        }
        self.is_parked.store(false, Ordering::SeqCst);
    }
}
