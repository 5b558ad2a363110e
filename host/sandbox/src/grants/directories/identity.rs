//! The identity of a directory of the host.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::str::FromStr;
use std::time::UNIX_EPOCH;

/// The device and inode numbers of a directory, unique among the directories that exist at the same time. They do not
/// change when the directory is renamed. On platforms without inodes, a hash of the path replaces the inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DirectoryInode {
    device: u64,
    inode: u64,
}

impl DirectoryInode {
    #[cfg(unix)]
    fn of(directory: &File, _path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = directory.metadata()?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    #[cfg(not(unix))]
    #[allow(
        clippy::unnecessary_wraps,
        reason = "reading the metadata can fail on other platforms"
    )]
    fn of(_directory: &File, path: &Path) -> io::Result<Self> {
        let hash = blake3::hash(path.as_os_str().as_encoded_bytes());
        let inode = hash
            .as_bytes()
            .iter()
            .take(8)
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        Ok(Self { device: 0, inode })
    }
}

/// The identity of a directory: its inode and its birth time. A file system can reuse the inode number of a removed
/// directory. The birth time then distinguishes the new directory from the removed one.
///
/// Two directories with the same inode number have the same identity if the file system does not report birth times, or
/// if both were created within one step of its clock. Some file systems change the birth time of a directory, such as an
/// overlay that copies the directory. The identity then changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryIdentity {
    inode: DirectoryInode,
    /// The birth time, in nanoseconds since 1970. `None` if it is unknown.
    birth_time: Option<u128>,
}

impl DirectoryIdentity {
    /// Returns the identity of an open directory. `path` is its real path, which identifies it on platforms without
    /// inodes.
    pub(super) fn of(directory: &File, path: &Path) -> io::Result<Self> {
        Ok(Self {
            inode: DirectoryInode::of(directory, path)?,
            birth_time: birth_time(directory),
        })
    }

    /// Returns the inode, for comparisons with directories that exist at the same time.
    pub(crate) fn inode(self) -> DirectoryInode {
        self.inode
    }

    /// Returns whether a directory with this identity is the recorded directory. If the record has no birth time, compares
    /// only the inode. Records of earlier versions of the host have no birth times.
    pub(crate) fn matches_recorded(self, recorded: Self) -> bool {
        self.inode == recorded.inode && (recorded.birth_time.is_none() || self.birth_time == recorded.birth_time)
    }
}

fn birth_time(directory: &File) -> Option<u128> {
    let created = directory.metadata().ok()?.created().ok()?;
    let since_epoch = created.duration_since(UNIX_EPOCH).ok()?;
    Some(since_epoch.as_nanos())
}

/// An entry of [`DirectoryRecord`](crate::grants::file::DirectoryRecord): the identity of a granted directory. If a plugin
/// could replace the directory, it is the identity when the directory was first opened, otherwise when it was last opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedDirectory {
    pub(crate) identity: DirectoryIdentity,
    /// Whether the directory was inside a directory that some grant made writable, so that a plugin could replace it.
    pub(crate) was_inside_writable_directory: bool,
}

impl RecordedDirectory {
    /// Returns the entry to record after the directory at the same path was opened again. `current` describes the opened
    /// directory. If a plugin could replace the directory, the recorded identity stays, so that a replacement is noticed.
    pub(crate) fn updated(self, current: Self) -> Self {
        if !self.was_inside_writable_directory {
            return current;
        }
        if current.identity.matches_recorded(self.identity) {
            // The birth time is added to an entry without one.
            let identity = if self.identity.birth_time.is_none() {
                current.identity
            } else {
                self.identity
            };
            return Self { identity, ..self };
        }
        self
    }

    /// Returns whether this entry suffices to recognise a later replacement of the directory that `current` describes.
    pub(crate) fn covers(self, current: Self) -> bool {
        current.identity.matches_recorded(self.identity)
            && (self.was_inside_writable_directory || !current.was_inside_writable_directory)
    }
}

/// The format in the record: `device:inode:birth_time`, or `device:inode` without a birth time.
impl fmt::Display for DirectoryIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.inode.device, self.inode.inode)?;
        match self.birth_time {
            Some(birth_time) => write!(f, ":{birth_time}"),
            None => Ok(()),
        }
    }
}

impl FromStr for DirectoryIdentity {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        let parse = || {
            let (device, inode_and_time) = text.split_once(':')?;
            let (inode, birth_time) = match inode_and_time.split_once(':') {
                Some((inode, birth_time)) => (inode, Some(birth_time.parse::<u128>().ok()?)),
                None => (inode_and_time, None),
            };
            let inode = DirectoryInode {
                device: device.parse().ok()?,
                inode: inode.parse().ok()?,
            };
            Some(Self { inode, birth_time })
        };
        let error = || {
            let why = format!("`{text}` is not the identity of a directory");
            io::Error::new(io::ErrorKind::InvalidData, why)
        };
        parse().ok_or_else(error)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn identity(text: &str) -> DirectoryIdentity {
        text.parse().unwrap()
    }

    // attack: L2
    #[test]
    fn a_directory_with_the_inode_of_a_removed_one_is_another_directory() {
        let recorded = identity("1:2:300");
        assert!(identity("1:2:300").matches_recorded(recorded));
        for other in ["1:2:301", "1:3:300", "2:2:300", "1:2"] {
            assert!(!identity(other).matches_recorded(recorded), "{other}");
        }
        assert_eq!(recorded.to_string(), "1:2:300");
        for damaged in ["", "1", "1:", "1:2:", "1:2:3:4", "1:2:x"] {
            let error = damaged.parse::<DirectoryIdentity>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{damaged}`")), "{error}");
        }
    }

    #[test]
    fn a_record_without_a_birth_time_matches_by_inode_and_gets_the_birth_time() {
        let entry = |text: &str, was_inside_writable_directory| RecordedDirectory {
            identity: identity(text),
            was_inside_writable_directory,
        };
        assert!(identity("1:2:300").matches_recorded(identity("1:2")));
        assert!(!identity("1:3:300").matches_recorded(identity("1:2")));
        assert_eq!(identity("1:2").to_string(), "1:2");
        let (old, opened) = (entry("1:2", true), entry("1:2:300", false));
        assert_eq!(old.updated(opened), entry("1:2:300", true));
        assert!(old.covers(opened));
        let other = entry("1:3:300", false);
        assert_eq!(old.updated(other), old, "a replacement is not recorded");
        assert!(!old.covers(other));
        assert_eq!(entry("1:2", false).updated(other), other, "no plugin could replace it");
        assert!(!entry("1:2", false).covers(entry("1:2", true)));
    }
}
