//! Detection of a file change by metadata, without reading the content.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// The metadata of a file at one time. If the metadata is different later, the file may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileStamp {
    File {
        modified: Option<SystemTime>,
        bytes: u64,
        /// The inode number, and the time of the inode's last change: the seconds since 1970, and the nanoseconds
        /// within the second. Zeros on platforms without inodes.
        inode_and_change_time: (u64, i64, i64),
    },
    Unreadable(io::ErrorKind),
}

impl FileStamp {
    pub(super) fn of(file: &Path) -> Self {
        match fs::metadata(file) {
            Ok(metadata) => Self::File {
                modified: metadata.modified().ok(),
                bytes: metadata.len(),
                inode_and_change_time: inode_and_change_time(&metadata),
            },
            Err(error) => Self::Unreadable(error.kind()),
        }
    }
}

#[cfg(unix)]
fn inode_and_change_time(metadata: &fs::Metadata) -> (u64, i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn inode_and_change_time(_: &fs::Metadata) -> (u64, i64, i64) {
    (0, 0, 0)
}
