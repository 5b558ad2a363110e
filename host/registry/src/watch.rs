//! Keeping up with plugin directories.
//!
//! The operating system's events are hints and nothing more: they come twice, too early, or, on a network's file system and
//! after an overflow, not at all. Each makes the registry look for itself, and so does the clock, whatever events there are.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use super::ask::{DiscoveryTargets, DynamicDiscovery};
use super::live::LiveRegistry;
#[cfg(feature = "watch")]
use super::notices::Notices;
use toolwit_core::Error;

/// How it is found out that something changed.
#[derive(Clone, Copy, Debug)]
pub struct WatchOptions {
    /// After an event, it must be quiet for this long before the directories are looked at: a build writes many files.
    pub quiet: Duration,
    /// Events that do not end are not waited for longer than this.
    pub quiet_wall_max: Duration,
    /// How often the directories are looked at without an event. A look that takes long makes the next one wait.
    pub poll_every: Duration,
    /// Whether the operating system is asked for events, where it has them.
    pub events: WatchEvents,
    /// Whether new plugins are asked for the tools that they tell only when they run.
    pub dynamic_discovery: DynamicDiscovery,
}

/// Whether the operating system is asked for events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchEvents {
    /// Where it has them, and the feature `store` is there.
    #[default]
    System,
    /// No: what changed is found at the next poll.
    Off,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            quiet: Duration::from_millis(100),
            quiet_wall_max: Duration::from_secs(1),
            poll_every: Duration::from_secs(2),
            events: WatchEvents::System,
            dynamic_discovery: DynamicDiscovery::Automatic,
        }
    }
}

/// Polling takes at most this part of the time: one in fifty.
const POLL_SHARE: u32 = 50;

/// Keeps a registry up with its directories until it is dropped.
#[must_use = "nothing is watched any more when it is dropped"]
pub struct WatchGuard {
    /// A set of one: it ends its task when it is dropped.
    _task: JoinSet<()>,
}

impl LiveRegistry {
    /// Keeps up with the directories from now on, as long as the answer is kept. Needs a runtime of tokio.
    pub fn watch(&self, options: WatchOptions) -> WatchGuard {
        let mut task = JoinSet::new();
        task.spawn(follow(self.clone(), options));
        WatchGuard { _task: task }
    }

    /// Returns the directories in which packages lie: the places themselves, and packages' own folders.
    #[cfg(feature = "watch")]
    fn directories(&self) -> Vec<std::path::PathBuf> {
        let registry = self.current();
        let folders = registry.packages().iter().filter_map(|package| package.path.parent());
        let places = self.places().iter().map(|place| match place.is_dir() {
            true => place.as_path(),
            // A single file: its directory sees when another takes its place.
            false => place.parent().unwrap_or(place),
        });
        let mut directories: Vec<_> = folders.chain(places).map(std::path::PathBuf::from).collect();
        directories.sort();
        directories.dedup();
        directories
    }
}

async fn follow(live: LiveRegistry, options: WatchOptions) {
    let (hint, mut hints) = mpsc::channel(1);
    #[cfg(feature = "watch")]
    let mut notices = match options.events {
        WatchEvents::System => Notices::start(hint.clone()),
        WatchEvents::Off => None,
    };
    // As long as it is kept, there is always a next hint to wait for.
    let _kept = hint;
    let mut pause = options.poll_every;
    let mut asks = JoinSet::new();
    loop {
        #[cfg(feature = "watch")]
        if let Some(notices) = &mut notices {
            notices.follow(live.directories());
        }
        tokio::select! {
            _ = hints.recv() => settle(&mut hints, options).await,
            () = tokio::time::sleep(pause) => {}
        }
        let started = Instant::now();
        let mut is_unsettled = false;
        match live.refresh().await {
            Ok(refreshed) => {
                is_unsettled = refreshed.is_unsettled;
                if refreshed.is_changed {
                    tracing::info!("the plugins have changed");
                }
            }
            Err(error) => tracing::warn!(%error, "the plugins could not be read again"),
        }
        while let Some(asked) = asks.try_join_next() {
            told(asked);
        }
        if options.dynamic_discovery == DynamicDiscovery::Automatic && asks.is_empty() {
            // Beside the looks: a plugin may take its time to answer.
            let live = live.clone();
            asks.spawn(async move { live.discover_dynamic_tools(DiscoveryTargets::Pending).await.map(drop) });
        }
        pause = match is_unsettled {
            true => options.poll_every,
            false => options.poll_every.max(started.elapsed().saturating_mul(POLL_SHARE)),
        };
    }
}

/// Says why plugins could not be asked. How each answered was said before.
fn told(asked: Result<Result<(), Error>, JoinError>) {
    match asked {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the plugins could not be asked for their tools"),
        Err(error) => tracing::error!(
            error = &error as &dyn std::error::Error,
            "asking the plugins for their tools failed unexpectedly"
        ),
    }
}

/// Waits until no more hints come.
async fn settle(hints: &mut mpsc::Receiver<()>, options: WatchOptions) {
    let until_quiet = async { while tokio::time::timeout(options.quiet, hints.recv()).await.is_ok() {} };
    // A timeout here means that it never got quiet.
    let _ = tokio::time::timeout(options.quiet_wall_max, until_quiet).await;
}
