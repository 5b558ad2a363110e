//! The operating system's word that something in a directory changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// The most directories that the system is asked about; it has few places for such questions, and others need them too.
const DIRECTORIES_MAX: usize = 1_024;

/// Listens to directories, and gives a hint whenever one may have changed.
pub(super) struct Notices {
    watcher: RecommendedWatcher,
    /// What is listened to, as the directory that it was: one that was made anew has another number.
    heard: BTreeMap<PathBuf, u64>,
}

impl Notices {
    /// Starts to listen. `None` where the system has no such thing to give; polling must do then.
    pub(super) fn start(hint: mpsc::Sender<()>) -> Option<Self> {
        let told = move |event: notify::Result<Event>| {
            // A hint that waits already is enough. An error, such as a lost event, is a reason to look as well.
            if event.as_ref().map_or(true, is_change) {
                let _ = hint.try_send(());
            }
        };
        match notify::recommended_watcher(told) {
            Ok(watcher) => Some(Self {
                watcher,
                heard: BTreeMap::new(),
            }),
            Err(error) => {
                tracing::debug!(%error, "the system tells nothing of changes; the plugins are looked at by the clock");
                None
            }
        }
    }

    /// Listens to these directories and no others.
    pub(super) fn follow(&mut self, directories: Vec<PathBuf>) {
        let wanted: BTreeMap<PathBuf, u64> = directories
            .into_iter()
            .take(DIRECTORIES_MAX)
            .filter_map(|directory| Some((directory.clone(), number(&directory)?)))
            .collect();
        for (directory, number) in &self.heard {
            if wanted.get(directory) != Some(number) {
                // It may be gone, which ended the listening by itself.
                let _ = self.watcher.unwatch(directory);
            }
        }
        for (directory, number) in &wanted {
            if self.heard.get(directory) != Some(number)
                && let Err(error) = self.watcher.watch(directory, RecursiveMode::NonRecursive)
            {
                tracing::debug!(directory = %directory.display(), %error, "the system does not tell of changes here");
            }
        }
        self.heard = wanted;
    }
}

/// Whether an event may mean another content. That somebody reads, this host too, means nothing.
fn is_change(event: &Event) -> bool {
    event.need_rescan()
        || match event.kind {
            EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
            _ => true,
        }
}

#[cfg(unix)]
fn number(directory: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(directory).ok().map(|metadata| metadata.ino())
}

#[cfg(not(unix))]
fn number(directory: &Path) -> Option<u64> {
    directory.is_dir().then_some(0)
}
