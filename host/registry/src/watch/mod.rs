//! Watching plugin directories for changes.
//!
//! File system events are only hints: they can be duplicated or early, and on network file systems and after an
//! overflow they can be missing. Each event triggers a scan, and so does a timer.

#[cfg(feature = "watch")]
mod events;

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

#[cfg(feature = "watch")]
use self::events::DirectoryEvents;
use crate::discovery::{DiscoveryTargets, DynamicDiscovery};
use crate::live::LiveRegistry;
use toolwit_core::Error;

/// How changes in plugin directories are detected.
#[derive(Clone, Copy, Debug)]
pub struct WatchOptions {
    /// The time without a further event after which the directories are scanned. A build writes many files and causes many
    /// events.
    pub quiet: Duration,
    /// The maximum time from the first event to the scan, if further events keep arriving.
    pub quiet_wall_max: Duration,
    /// The interval between scans if no events arrive. It is extended if scans would use more than 2 % of the time,
    /// unless a file is still being written.
    pub poll_every: Duration,
    /// Whether to use file system events.
    pub events: WatchEvents,
    /// Whether to discover the dynamic tools of new plugins.
    pub dynamic_discovery: DynamicDiscovery,
}

/// Whether to use file system events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchEvents {
    /// Use them where the system supports them and the feature `watch` is enabled.
    #[default]
    System,
    /// Only poll.
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

/// If no events arrive, the pause after a scan is at least this many times the duration of the scan, unless a file is still
/// being written.
const PAUSE_PER_SCAN: u32 = 50;

/// Stops watching the directories of a registry when it is dropped.
#[must_use = "dropping it stops watching"]
pub struct WatchGuard {
    /// Contains one task, which is aborted on drop.
    _task: JoinSet<()>,
}

impl LiveRegistry {
    /// Starts to watch the directories, until the guard is dropped. Must be called in a Tokio runtime.
    pub fn watch(&self, options: WatchOptions) -> WatchGuard {
        let mut task = JoinSet::new();
        task.spawn(watch(self.clone(), options));
        WatchGuard { _task: task }
    }

    /// Returns the directories that contain packages: those at the scanned paths, and the folders of single packages.
    #[cfg(feature = "watch")]
    fn directories(&self) -> Vec<std::path::PathBuf> {
        let registry = self.current();
        let folders = registry.packages().iter().filter_map(|package| package.path.parent());
        let roots = self.paths().iter().map(|path| {
            if path.is_dir() {
                path.as_path()
            } else {
                // The directory of a single file reports when the file is replaced.
                path.parent().unwrap_or(path)
            }
        });
        let mut directories: Vec<_> = folders.chain(roots).map(std::path::PathBuf::from).collect();
        directories.sort();
        directories.dedup();
        directories
    }
}

/// Scans the directories after each series of events and at intervals, and discovers dynamic tools of new plugins. Never
/// returns.
async fn watch(live: LiveRegistry, options: WatchOptions) {
    let (sender, mut events) = mpsc::channel(1);
    #[cfg(feature = "watch")]
    let mut directory_events = match options.events {
        WatchEvents::System => DirectoryEvents::start(sender.clone()),
        WatchEvents::Off => None,
    };
    // Keeps the channel open if there are no file system events.
    let _sender = sender;
    let mut pause = options.poll_every;
    let mut discoveries = JoinSet::new();
    loop {
        #[cfg(feature = "watch")]
        if let Some(events) = &mut directory_events {
            events.watch(live.directories());
        }
        tokio::select! {
            _ = events.recv() => wait_until_quiet(&mut events, options).await,
            () = tokio::time::sleep(pause) => {}
        }
        let started = Instant::now();
        let mut is_unsettled = false;
        match live.refresh().await {
            Ok(outcome) => {
                is_unsettled = outcome.is_unsettled;
                if outcome.is_changed {
                    tracing::info!("the plugins have changed");
                }
            }
            Err(error) => tracing::warn!(%error, "the plugin directories could not be scanned"),
        }
        while let Some(result) = discoveries.try_join_next() {
            log_failure(result);
        }
        if options.dynamic_discovery == DynamicDiscovery::Automatic && discoveries.is_empty() {
            // Runs concurrently with the following scans: a plugin may take long.
            let live = live.clone();
            discoveries.spawn(async move { live.discover_dynamic_tools(DiscoveryTargets::Pending).await.map(drop) });
        }
        pause = if is_unsettled {
            options.poll_every
        } else {
            options.poll_every.max(started.elapsed().saturating_mul(PAUSE_PER_SCAN))
        };
    }
}

/// Logs the error of a failed discovery. Failures of single plugins are logged by the discovery itself.
fn log_failure(result: Result<Result<(), Error>, JoinError>) {
    match result {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "dynamic tools could not be discovered"),
        Err(error) => tracing::error!(
            error = &error as &dyn std::error::Error,
            "the discovery of dynamic tools failed unexpectedly"
        ),
    }
}

/// Waits until no event has arrived for [`WatchOptions::quiet`], but at most for [`WatchOptions::quiet_wall_max`].
async fn wait_until_quiet(events: &mut mpsc::Receiver<()>, options: WatchOptions) {
    let until_quiet = async { while tokio::time::timeout(options.quiet, events.recv()).await.is_ok() {} };
    let _ = tokio::time::timeout(options.quiet_wall_max, until_quiet).await;
}
