//! Files that several processes change.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::private::private_options;
use super::sibling;
use super::staged_file::StagedFile;

/// A lock on a file that several processes change. The lock is held until this value is dropped.
///
/// To change the file, read it and [replace](Self::replace) it while this value exists, so that concurrent changes are not
/// lost. A reader needs no lock: it sees the old content or the new one. After a replacement, only the owner of the file can
/// read and write it.
///
/// ```
/// use toolwit_core::file::LockedFile;
///
/// # fn main() -> std::io::Result<()> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("settings/count");
/// let file = LockedFile::acquire(&path)?;
/// let count = std::fs::read_to_string(&path).unwrap_or_default();
/// file.replace(format!("{count}+1").as_bytes())?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LockedFile {
    path: PathBuf,
    _lock: File,
}

impl LockedFile {
    /// Waits for the lock of the file at `path`. The lock is on a second file, whose name is the file name of `path` with `.lock`
    /// appended. Creates missing directories. The file at `path` need not exist.
    ///
    /// # Errors
    /// If the directories or the lock file cannot be created, or the lock file cannot be locked.
    pub fn acquire(path: &Path) -> io::Result<Self> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory)?;
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: lock(&sibling(path, ".lock"))?,
        })
    }

    /// Replaces the file atomically.
    ///
    /// # Errors
    /// If the file cannot be written. The old content then remains, unless only the flush of the directory failed.
    pub fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        StagedFile::write_private(&self.path, bytes)?.commit()
    }
}

/// Opens or creates a lock file, and waits for its lock. The lock is held until the returned file is dropped or the process
/// ends.
fn lock(lock_path: &Path) -> io::Result<File> {
    let file = private_options().create(true).append(true).open(lock_path)?;
    file.lock()?;
    Ok(file)
}
