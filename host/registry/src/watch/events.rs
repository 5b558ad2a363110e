//! File system events of directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// The maximum number of watched directories. Systems limit the number of watches per user, and other programs need them too.
const DIRECTORIES_MAX: usize = 1_024;

/// Sends a message whenever a watched directory may have changed.
pub(super) struct DirectoryWatcher {
    watcher: RecommendedWatcher,
    /// The inodes of the watched directories: a directory that was deleted and created again must be watched again.
    watched_inodes: BTreeMap<PathBuf, u64>,
}

impl DirectoryWatcher {
    /// Starts a watcher that watches no directory yet. Each message in the channel stands for one or more events. Returns `None`
    /// if the system does not support events.
    pub(super) fn start(sender: mpsc::Sender<()>) -> Option<Self> {
        let on_event = move |event: notify::Result<Event>| {
            // An error can mean that an event was lost, so an error also causes a scan. If the channel is full, the message in
            // the channel stands for this event too.
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

    /// Watches these directories and no others. Directories beyond the first [`DIRECTORIES_MAX`] are not watched.
    pub(super) fn watch(&mut self, directories: Vec<PathBuf>) {
        let mut inodes: BTreeMap<PathBuf, u64> = directories
            .into_iter()
            .take(DIRECTORIES_MAX)
            .filter_map(|directory| Some((directory.clone(), inode(&directory)?)))
            .collect();
        for (directory, inode) in &self.watched_inodes {
            if inodes.get(directory) != Some(inode) {
                // Fails if the directory was deleted. The deletion has then already ended the watch.
                let _ = self.watcher.unwatch(directory);
            }
        }
        // A directory that cannot be watched is polled, and tried again at the next call.
        inodes.retain(|directory, inode| {
            if self.watched_inodes.get(directory) == Some(inode) {
                return true;
            }
            let watched = self.watcher.watch(directory, RecursiveMode::NonRecursive);
            if let Err(error) = &watched {
                tracing::debug!(directory = %directory.display(), %error, "a directory cannot be watched; it is polled");
            }
            watched.is_ok()
        });
        self.watched_inodes = inodes;
    }
}

/// Returns whether the content of a directory may have changed. Reads are not changes: each scan reads the files itself, and its
/// reads must not cause another scan.
fn is_change(event: &Event) -> bool {
    event.need_rescan()
        || match event.kind {
            EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
            _ => true,
        }
}

/// Returns the inode of a directory, or `None` if it does not exist.
#[cfg(unix)]
fn inode(directory: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(directory).ok().map(|metadata| metadata.ino())
}

/// Returns 0 for a directory that exists, because the system has no inodes.
#[cfg(not(unix))]
fn inode(directory: &Path) -> Option<u64> {
    directory.is_dir().then_some(0)
}
