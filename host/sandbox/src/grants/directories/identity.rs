//! The identity of a directory of the host.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::str::FromStr;

/// The identity of a directory. On Unix, it does not change when the directory is renamed, and a different directory at the
/// same path has a different identity. On other platforms, the path is the identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DirectoryIdentity {
    device: u64,
    inode: u64,
}

impl DirectoryIdentity {
    /// Returns the identity of an open directory. `path` is its real path.
    #[cfg(unix)]
    pub(super) fn of(directory: &File, _path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = directory.metadata()?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Returns the identity of an open directory. `path` is its real path, which identifies it on platforms without inodes.
    #[cfg(not(unix))]
    #[allow(
        clippy::unnecessary_wraps,
        reason = "reading the metadata can fail on other platforms"
    )]
    pub(super) fn of(_directory: &File, path: &Path) -> io::Result<Self> {
        let hash = blake3::hash(path.as_os_str().as_encoded_bytes());
        let inode = hash
            .as_bytes()
            .iter()
            .take(8)
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        Ok(Self { device: 0, inode })
    }
}

/// An entry in the record of granted directories: what a directory was when it was first opened. As long as no plugin could
/// replace the directory, later changes update the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedDirectory {
    pub(crate) identity: DirectoryIdentity,
    /// Whether the directory was inside one that some grant made writable. If so, a different directory at its path is
    /// refused. Otherwise, a different one is refused only if a link leads to it: a plugin could have created the link with a
    /// grant of another grants file, or with a grant that was revoked.
    pub(crate) is_replaceable: bool,
}

impl fmt::Display for DirectoryIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.device, self.inode)
    }
}

impl FromStr for DirectoryIdentity {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        let parse = || {
            let (device, inode) = text.split_once(':')?;
            Some(Self {
                device: device.parse().ok()?,
                inode: inode.parse().ok()?,
            })
        };
        parse().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is not the identity of a directory"))
    }
}
