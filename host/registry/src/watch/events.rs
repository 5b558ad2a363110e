//! File system events of directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// The maximum number of watched directories. Systems limit the number of watches per user, and other programs need them too.
const DIRECTORIES_MAX: usize = 1_024;

/// Sends a message whenever a watched directory may have changed.
pub(super) struct DirectoryEvents {
    watcher: RecommendedWatcher,
    /// The inodes of the watched directories: a directory that was deleted and created again must be watched again.
    watched_inodes: BTreeMap<PathBuf, u64>,
}

impl DirectoryEvents {
    /// Starts without watched directories. Each message in the channel stands for one or more events. Returns `None` if the
    /// system does not support events.
    pub(super) fn start(sender: mpsc::Sender<()>) -> Option<Self> {
        let on_event = move |event: notify::Result<Event>| {
            // A full channel already has a message. An error, such as a lost event, also calls for a scan.
            if event.as_ref().map_or(true, is_change) {
                let _ = sender.try_send(());
            }
        };
        match notify::recommended_watcher(on_event) {
            Ok(watcher) => Some(Self {
                watcher,
                watched_inodes: BTreeMap::new(),
            }),
            Err(error) => {
                tracing::debug!(%error, "file system events are not available; the plugin directories are polled");
                None
            }
        }
    }

    /// Watches these directories and no others. Directories above the maximum number are not watched.
    pub(super) fn watch(&mut self, directories: Vec<PathBuf>) {
        let inodes: BTreeMap<PathBuf, u64> = directories
            .into_iter()
            .take(DIRECTORIES_MAX)
            .filter_map(|directory| Some((directory.clone(), inode(&directory)?)))
            .collect();
        for (directory, inode) in &self.watched_inodes {
            if inodes.get(directory) != Some(inode) {
                // Fails if the directory was deleted, which also ends the watch.
                let _ = self.watcher.unwatch(directory);
            }
        }
        for (directory, inode) in &inodes {
            if self.watched_inodes.get(directory) != Some(inode)
                && let Err(error) = self.watcher.watch(directory, RecursiveMode::NonRecursive)
            {
                tracing::debug!(directory = %directory.display(), %error, "a directory cannot be watched; it is polled");
            }
        }
        self.watched_inodes = inodes;
    }
}

/// Returns whether an event may mean that content changed. Reads, also those of this process, do not change content.
fn is_change(event: &Event) -> bool {
    event.need_rescan()
        || match event.kind {
            EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
            _ => true,
        }
}

/// Returns the inode of a directory.
#[cfg(unix)]
fn inode(directory: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(directory).ok().map(|metadata| metadata.ino())
}

/// Returns 0 for an existing directory, because the system has no inodes.
#[cfg(not(unix))]
fn inode(directory: &Path) -> Option<u64> {
    directory.is_dir().then_some(0)
}
