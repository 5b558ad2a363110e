//! The quota of a granted directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use toolwit_core::limits::DIRECTORY_ENTRIES_MAX;

/// The bytes counted for a file, a directory or a link in addition to its content, because names and inodes use disk space too.
pub(crate) const ENTRY_BYTES: u64 = 4 << 10;

/// The pause between two measurements, as a multiple of the duration of the last one. Without it, a guest that writes
/// continuously would make the host measure continuously.
const PAUSE_FACTOR: u32 = 8;

/// The quota of a directory in bytes, shared by all instances that write to it.
///
/// Every written byte is counted, even if it replaces another, so that the count is never too low. When the count reaches the
/// limit, the directory is measured again, which frees the bytes that were removed or overwritten.
#[derive(Debug)]
pub(crate) struct DirectoryQuota {
    directory: PathBuf,
    bytes_max: u64,
    count: Mutex<QuotaCount>,
}

#[derive(Debug, Default)]
struct QuotaCount {
    /// `None` before the first measurement.
    used: Option<u64>,
    /// The earliest time of the next measurement.
    next: Option<Instant>,
}

impl DirectoryQuota {
    pub(crate) fn new(directory: PathBuf, bytes_max: u64) -> Self {
        Self {
            directory,
            bytes_max,
            count: Mutex::default(),
        }
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Reserves bytes without reading the disk. Returns `false` if the directory has to be measured first.
    pub(crate) fn try_reserve(&self, bytes: u64) -> bool {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        if count.next.is_some_and(|next| started < next) {
            return Err(disk_full());
        }
        let used = measure(&self.directory)?;
        let took = started.elapsed().max(Duration::from_micros(1));
        count.next = Some(started + took * PAUSE_FACTOR);
        count.used = Some(used);
        if used.saturating_add(bytes) > self.bytes_max {
            tracing::info!(directory = %self.directory.display(), bytes_max = self.bytes_max, "a plugin's directory is full");
            return Err(disk_full());
        }
        count.used = Some(used + bytes);
        Ok(())
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

/// Measures a directory. Links are counted but not followed. Entries that disappear meanwhile are not counted.
fn measure(directory: &Path) -> io::Result<u64> {
    let mut pending = vec![directory.to_owned()];
    let (mut bytes, mut entries) = (0_u64, 0_u64);
    while let Some(next) = pending.pop() {
        let listed = match fs::read_dir(&next) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in listed {
            let Ok(metadata) = entry.and_then(|entry| {
                let metadata = entry.metadata()?;
                if metadata.is_dir() {
                    pending.push(entry.path());
                }
                Ok(metadata)
            }) else {
                continue;
            };
            entries += 1;
            bytes = bytes.saturating_add(ENTRY_BYTES);
            if metadata.is_file() {
                bytes = bytes.saturating_add(metadata.len());
            }
            if entries > DIRECTORY_ENTRIES_MAX {
                return Ok(u64::MAX);
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: B18
    #[test]
    fn only_removed_bytes_are_freed() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("there"), [0; 1_000]).unwrap();
        let quota = DirectoryQuota::new(directory.path().to_owned(), 20_000);
        quota.reserve(10_000).unwrap();
        assert!(!quota.try_reserve(10_000));
        fs::write(directory.path().join("written"), [0; 10_000]).unwrap();
        assert!(quota.reserve(10_000).is_err(), "the file is on disk");
        fs::remove_file(directory.path().join("written")).unwrap();
        // Until the pause after the last measurement is over.
        while quota.reserve(10_000).is_err() {
            std::thread::yield_now();
        }
    }
}
