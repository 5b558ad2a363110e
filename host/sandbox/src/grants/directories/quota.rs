//! The quota of a granted directory.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::open_files::OpenFiles;
use super::usage::measure;

/// The bytes counted for a file, a directory or a link in addition to its content, because names and inodes use disk space too.
pub(crate) const ENTRY_BYTES: u64 = 4 << 10;

/// The pause between two measurements, as a multiple of the duration of the last one. Without it, a guest that writes
/// continuously would make the host measure continuously.
const PAUSE_FACTOR: u32 = 8;

/// The quota of a directory in bytes, shared by all instances that write to it.
///
/// Every written byte is counted, even if it replaces another, so that the count is never too low. When the count reaches the
/// limit, the directory is measured again, which frees the bytes that were removed or overwritten. A removed file is freed when
/// it is closed.
#[derive(Debug)]
pub(crate) struct DirectoryQuota {
    directory: Arc<File>,
    path: PathBuf,
    bytes_max: u64,
    files: Arc<OpenFiles>,
    count: Mutex<QuotaCount>,
}

#[derive(Debug, Default)]
struct QuotaCount {
    /// `None` before the first measurement.
    used: Option<u64>,
    /// Reserved bytes that may not be on disk yet, so that a measurement does not see them.
    unwritten: u64,
    /// The earliest time of the next measurement.
    next: Option<Instant>,
}

impl DirectoryQuota {
    /// Creates the quota of an open directory. `path` is its real path; `files` lists the files that guests have open.
    pub(super) fn new(directory: Arc<File>, path: PathBuf, bytes_max: u64, files: Arc<OpenFiles>) -> Self {
        Self {
            directory,
            path,
            bytes_max,
            files,
            count: Mutex::default(),
        }
    }

    fn count(&self) -> MutexGuard<'_, QuotaCount> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves bytes without reading the disk. Returns `false` if the directory has to be measured first.
    pub(crate) fn try_reserve(&self, bytes: u64) -> bool {
        let mut count = self.count();
        match count.used {
            Some(used) if used.saturating_add(bytes) <= self.bytes_max => {
                count.used = Some(used + bytes);
                true
            }
            _ => false,
        }
    }

    /// Reserves bytes, and measures the directory if it seems full. Reads the disk.
    ///
    /// # Errors
    /// The error of a full disk if the quota is reached.
    pub(crate) fn reserve(&self, bytes: u64) -> io::Result<()> {
        if self.try_reserve(bytes) {
            return Ok(());
        }
        let mut count = self.count();
        let started = Instant::now();
        if count.next.is_some_and(|next| started < next) {
            return Err(disk_full());
        }
        let used = measure(&self.directory)?
            .saturating_add(self.files.removed_bytes(&self.path))
            .saturating_add(count.unwritten);
        let took = started.elapsed().max(Duration::from_micros(1));
        count.next = Some(started + took * PAUSE_FACTOR);
        count.used = Some(used);
        if used.saturating_add(bytes) > self.bytes_max {
            tracing::info!(directory = %self.path.display(), bytes_max = self.bytes_max, "a plugin's directory is full");
            return Err(disk_full());
        }
        count.used = Some(used + bytes);
        Ok(())
    }

    /// Records that reserved bytes are about to be written. They count until [`DirectoryQuota::written`], also if the directory is
    /// measured before.
    pub(crate) fn writing(&self, bytes: u64) {
        let mut count = self.count();
        count.unwritten = count.unwritten.saturating_add(bytes);
    }

    /// Records that bytes are on disk, or that writing them has failed.
    pub(crate) fn written(&self, bytes: u64) {
        let mut count = self.count();
        count.unwritten = count.unwritten.saturating_sub(bytes);
    }
}

/// Returns the error that the guest receives as "no space left".
pub(crate) fn disk_full() -> io::Error {
    if cfg!(windows) {
        io::Error::from_raw_os_error(112)
    } else {
        io::Error::from_raw_os_error(28)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn quota(directory: &Path, bytes_max: u64) -> DirectoryQuota {
        let handle = Arc::new(File::open(directory).unwrap());
        DirectoryQuota::new(handle, directory.to_owned(), bytes_max, Arc::default())
    }

    /// Reserves bytes after the pause that follows the last measurement.
    fn reserve_after_pause(quota: &DirectoryQuota, bytes: u64) {
        while quota.reserve(bytes).is_err() {
            std::thread::yield_now();
        }
    }

    // attack: B18
    #[test]
    fn only_removed_bytes_are_freed() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("there"), [0; 1_000]).unwrap();
        let quota = quota(directory.path(), 20_000);
        quota.reserve(10_000).unwrap();
        assert!(!quota.try_reserve(10_000));
        fs::write(directory.path().join("written"), [0; 10_000]).unwrap();
        assert!(quota.reserve(10_000).is_err(), "the file is on disk");
        fs::remove_file(directory.path().join("written")).unwrap();
        reserve_after_pause(&quota, 10_000);
    }

    // attack: L3
    #[cfg(unix)]
    #[test]
    fn a_removed_file_is_freed_when_it_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("written");
        fs::write(&path, [0; 10_000]).unwrap();
        let quota = quota(directory.path(), 20_000);
        let file = Arc::new(File::open(&path).unwrap());
        quota.files.track(directory.path(), &file);
        quota.files.track(directory.path(), &file);
        fs::remove_file(&path).unwrap();
        assert!(quota.reserve(10_000).is_err(), "the file is open");
        assert!(measure(&quota.directory).unwrap() == 0);
        drop(file);
        reserve_after_pause(&quota, 10_000);
    }

    #[test]
    fn reserved_bytes_count_until_they_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let quota = quota(directory.path(), 20_000);
        quota.reserve(15_000).unwrap();
        quota.writing(15_000);
        assert!(quota.reserve(15_000).is_err(), "a measurement does not see them");
        quota.written(15_000);
        reserve_after_pause(&quota, 15_000);
    }

    // attack: L6
    #[cfg(unix)]
    #[test]
    fn a_tree_deeper_than_any_path_is_measured() {
        const NAME: &str = "a-directory-with-a-long-name-so-that-the-path-becomes-too-long";
        let directory = tempfile::tempdir().unwrap();
        let mut deepest = File::open(directory.path()).unwrap();
        let options = cap_primitives::fs::DirOptions::new();
        for _ in 0..200 {
            for name in [NAME, "other"] {
                cap_primitives::fs::create_dir(&deepest, Path::new(name), &options).unwrap();
            }
            deepest = cap_primitives::fs::open_dir(&deepest, Path::new(NAME)).unwrap();
        }
        let root = File::open(directory.path()).unwrap();
        assert_eq!(measure(&root).unwrap(), 400 * ENTRY_BYTES);
        cap_primitives::fs::remove_dir_all(&root, Path::new(NAME)).unwrap();
    }
}
