//! The files that guests have open. They are tracked because a removed file uses disk space until it is closed.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::quota::ENTRY_BYTES;

/// The files that the guests of a host have open, each with the granted directory through which it was opened.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles(Mutex<TrackedFiles>);

#[derive(Debug, Default)]
struct TrackedFiles {
    /// Each file with the real path of the granted directory through which it was opened.
    files: Vec<(PathBuf, Weak<File>)>,
    /// The length of `files` at which closed files are removed from the list.
    sweep_length: usize,
}

impl OpenFiles {
    /// Records that a guest opened a file through a granted directory.
    pub(super) fn track(&self, directory: &Path, file: &Arc<File>) {
        let mut tracked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tracked.files.len() >= tracked.sweep_length {
            tracked.files.retain(|(_, file)| file.strong_count() > 0);
            tracked.sweep_length = (tracked.files.len() * 2).max(64);
        }
        tracked.files.push((directory.to_owned(), Arc::downgrade(file)));
    }

    /// Returns the bytes of removed files that are still open, plus [`ENTRY_BYTES`] for each. Counts the files that were
    /// opened through this directory, a directory inside it, or a directory that contains it.
    pub(super) fn removed_bytes(&self, directory: &Path) -> u64 {
        let tracked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let related_files = tracked.files.iter().filter(|(opened_through, _)| {
            opened_through.starts_with(directory) || directory.starts_with(opened_through)
        });
        let mut counted_inodes = HashSet::new();
        related_files
            .filter_map(|(_, file)| removed_file(&*file.upgrade()?))
            .filter(|(inode, _)| counted_inodes.insert(*inode))
            .map(|(_, bytes)| bytes)
            .fold(0, u64::saturating_add)
    }
}

/// Returns the device and the inode of a removed file, and the bytes that count for it. Returns `None` for other files.
#[cfg(unix)]
fn removed_file(file: &File) -> Option<((u64, u64), u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = file.metadata().ok()?;
    let inode = (metadata.dev(), metadata.ino());
    (metadata.nlink() == 0).then(|| (inode, metadata.len().saturating_add(ENTRY_BYTES)))
}

/// On other platforms, an open file cannot be removed.
#[cfg(not(unix))]
fn removed_file(_file: &File) -> Option<((u64, u64), u64)> {
    None
}
