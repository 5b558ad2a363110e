//! The clock by which guests are interrupted: one thread for all engines, asleep while no guest runs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wasmtime::EngineWeak;

use toolwit_core::{Error, ErrorKind, Phase};

/// How often a running guest looks up from its work.
const TICK: Duration = Duration::from_millis(1);

/// Ticks without a guest before the thread goes to sleep. Waking it costs a call more than a few idle ticks.
const LINGER_TICKS: u32 = 50;

/// Advances the epoch of every engine while a guest runs.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    running: AtomicUsize,
    asleep: AtomicBool,
    stopped: AtomicBool,
    /// Weak, so that the thread keeps no engine alive.
    engines: Mutex<Vec<EngineWeak>>,
}

/// Keeps the clock ticking while a guest runs.
pub(crate) struct Running {
    ticker: Arc<Ticker>,
}

impl Ticker {
    pub(crate) fn start() -> Result<Arc<Self>, Error> {
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let thread = thread::Builder::new()
            .name("toolwit-epoch".to_owned())
            .spawn(move || of_thread.tick())
            .map_err(|error| {
                Error::new(
                    ErrorKind::Internal,
                    Phase::Load,
                    "the clock's thread could not be started",
                )
                .with_source(error)
            })?;
        Ok(Arc::new(Self {
            shared,
            thread: Some(thread),
        }))
    }

    pub(crate) fn add(&self, engine: EngineWeak) {
        self.shared
            .engines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(engine);
    }

    /// Says that a guest is about to run, until the returned value is dropped.
    pub(crate) fn run(self: &Arc<Self>) -> Running {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::SeqCst) {
            self.unpark();
        }
        Running { ticker: self.clone() }
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ticker.shared.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.unpark();
        if let Some(thread) = self.thread.take() {
            // The thread only counts; it cannot have panicked, and there is nothing to do if it had.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn tick(&self) {
        let mut idle_ticks = 0;
        while !self.stopped.load(Ordering::SeqCst) {
            if self.running.load(Ordering::SeqCst) > 0 {
                idle_ticks = 0;
            } else if idle_ticks < LINGER_TICKS {
                idle_ticks += 1;
            } else {
                self.sleep();
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

    /// Parks until a guest runs. Saying so comes before looking, so that no start is missed.
    fn sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        while self.running.load(Ordering::SeqCst) == 0 && !self.stopped.load(Ordering::SeqCst) {
            thread::park();
        }
        self.asleep.store(false, Ordering::SeqCst);
    }
}
