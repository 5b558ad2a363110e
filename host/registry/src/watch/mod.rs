//! Watching plugin directories for changes.
//!
//! File system events are only hints. An event can arrive twice, or before the file is complete. On network file systems, and
//! after an overflow of the event queue, events can be missing. For this reason, both events and a timer trigger scans.

#[cfg(feature = "watch")]
mod events;

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

#[cfg(feature = "watch")]
use self::events::DirectoryWatcher;
use crate::discovery::{DiscoveryTargets, DynamicDiscovery};
use crate::live::LiveRegistry;
use toolwit_core::Error;

/// The options for detecting changes in plugin directories.
#[derive(Clone, Copy, Debug)]
pub struct WatchOptions {
    /// The time without a further event after which the directories are scanned. A build writes many files, and one scan at the
    /// end is enough.
    pub quiet: Duration,
    /// The maximum time from the first event to the scan, even if further events keep arriving.
    pub scan_delay_max: Duration,
    /// The pause between scans if no events arrive. The pause is longer if scans would use more than 2 % of the time,
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
    /// Use no events: scan only at intervals of [`WatchOptions::poll_every`].
    Off,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            quiet: Duration::from_millis(100),
            scan_delay_max: Duration::from_secs(1),
            poll_every: Duration::from_secs(2),
            events: WatchEvents::System,
            dynamic_discovery: DynamicDiscovery::Automatic,
        }
    }
}

/// The minimum ratio of the pause after a scan to the duration of the scan. It does not apply if an event arrives or a file is
/// still being written.
const PAUSE_SCAN_RATIO_MIN: u32 = 50;

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

    /// Returns the directories in which a change can affect the registry: the scanned directories, the parent directory of each
    /// scanned file, and the directory of each package.
    #[cfg(feature = "watch")]
    fn directories_to_watch(&self) -> Vec<std::path::PathBuf> {
        let registry = self.current();
        let package_directories = registry.packages().iter().filter_map(|package| package.path.parent());
        let scanned_directories = self.paths().iter().map(|path| {
            if path.is_dir() {
                path.as_path()
            } else {
                // If a file is replaced, only its directory reports an event.
                path.parent().unwrap_or(path)
            }
        });
        let mut directories: Vec<_> = package_directories
            .chain(scanned_directories)
            .map(std::path::PathBuf::from)
            .collect();
        directories.sort();
        directories.dedup();
        directories
    }
}

/// Scans the directories after each series of events and at intervals. Discovers the dynamic tools of new plugins if the options
/// ask for it. Never returns.
async fn watch(live: LiveRegistry, options: WatchOptions) {
    let (sender, mut events) = mpsc::channel(1);
    #[cfg(feature = "watch")]
    let mut directory_watcher = match options.events {
        WatchEvents::System => DirectoryWatcher::start(sender.clone()),
        WatchEvents::Off => None,
    };
    // Keeps the channel open if there is no watcher.
    let _sender = sender;
    let mut pause = options.poll_every;
    let mut discoveries = JoinSet::new();
    loop {
        #[cfg(feature = "watch")]
        if let Some(watcher) = &mut directory_watcher {
            watcher.watch(live.directories_to_watch());
        }
        tokio::select! {
            _ = events.recv() => wait_until_quiet(&mut events, options).await,
            () = tokio::time::sleep(pause) => {}
        }
        let started = Instant::now();
        let mut is_file_being_written = false;
        match live.refresh().await {
            Ok(outcome) => {
                is_file_being_written = outcome.is_unsettled;
                if outcome.is_changed {
                    tracing::info!("the plugins have changed");
                }
            }
            Err(error) => tracing::warn!(%error, "the plugin directories could not be scanned"),
        }
        while let Some(result) = discoveries.try_join_next() {
            log_discovery_error(result);
        }
        if options.dynamic_discovery == DynamicDiscovery::Automatic && discoveries.is_empty() {
            // The discovery runs in its own task, because a plugin may take long. Scans continue in the meantime.
            let live = live.clone();
            discoveries.spawn(async move { live.discover_dynamic_tools(DiscoveryTargets::Pending).await.map(drop) });
        }
        pause = if is_file_being_written {
            options.poll_every
        } else {
            options
                .poll_every
                .max(started.elapsed().saturating_mul(PAUSE_SCAN_RATIO_MIN))
        };
    }
}

/// Logs the error of a failed discovery. The discovery itself logs the failures of single plugins.
fn log_discovery_error(result: Result<Result<(), Error>, JoinError>) {
    match result {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "dynamic tools could not be discovered"),
        Err(error) => tracing::error!(
            error = &error as &dyn std::error::Error,
            "the discovery of dynamic tools failed unexpectedly"
        ),
    }
}

/// Waits until no event has arrived for [`WatchOptions::quiet`], but at most for [`WatchOptions::scan_delay_max`].
async fn wait_until_quiet(events: &mut mpsc::Receiver<()>, options: WatchOptions) {
    let until_quiet = async { while tokio::time::timeout(options.quiet, events.recv()).await.is_ok() {} };
    let _ = tokio::time::timeout(options.scan_delay_max, until_quiet).await;
}
