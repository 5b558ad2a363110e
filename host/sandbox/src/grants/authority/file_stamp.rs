//! Detection of a changed file without reading it.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// The metadata of a file at one time. Different metadata at a later time means that the file may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileStamp {
    File {
        modified: Option<SystemTime>,
        bytes: u64,
        /// The number of the inode, and the time of its last change in seconds and nanoseconds. Zeros on platforms
        /// without inodes.
        identity: (u64, i64, i64),
    },
    Unreadable(io::ErrorKind),
}

impl FileStamp {
    pub(super) fn of(file: &Path) -> Self {
        match fs::metadata(file) {
            Ok(metadata) => Self::File {
                modified: metadata.modified().ok(),
                bytes: metadata.len(),
                identity: identity(&metadata),
            },
            Err(error) => Self::Unreadable(error.kind()),
        }
    }
}

#[cfg(unix)]
fn identity(metadata: &fs::Metadata) -> (u64, i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> (u64, i64, i64) {
    (0, 0, 0)
}
