//! How much a granted directory may hold.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a file, a directory or a link costs besides its content: names and inodes fill a disk, too.
pub(crate) const ENTRY_BYTES: u64 = 4 << 10;

/// How much longer than measuring the directory took it is not measured again, so that a guest that writes on and on cannot
/// keep the host busy with it.
const PAUSE_FACTOR: u32 = 8;

/// Entries that are counted before a directory is taken to be full.
const ENTRIES_MAX: u64 = 1_000_000;

/// The bytes that a directory may hold, shared by all instances that write to it.
///
/// What is written is counted, whether or not it replaces something, so that the count is never too low. When it reaches the
/// bound, the directory is measured once more, which gives back what was removed or overwritten.
#[derive(Debug)]
pub(crate) struct DirectoryQuota {
    directory: PathBuf,
    bytes_max: u64,
    count: Mutex<Count>,
}

#[derive(Debug, Default)]
struct Count {
    /// `None` before the directory was first measured.
    used: Option<u64>,
    /// When it may be measured again.
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

    /// Takes bytes without looking at the disk. Fails when it has to be looked at.
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

    /// Takes bytes, and measures the directory when it seems full. Reads the disk.
    ///
    /// # Errors
    /// That of a full disk when there is no room.
    pub(crate) fn reserve(&self, bytes: u64) -> io::Result<()> {
        if self.try_reserve(bytes) {
            return Ok(());
        }
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        if count.next.is_some_and(|next| started < next) {
            return Err(full());
        }
        let used = measure(&self.directory)?;
        let took = started.elapsed().max(Duration::from_micros(1));
        count.next = Some(started + took * PAUSE_FACTOR);
        count.used = Some(used);
        if used.saturating_add(bytes) > self.bytes_max {
            tracing::info!(directory = %self.directory.display(), bytes_max = self.bytes_max, "a plugin's directory is full");
            return Err(full());
        }
        count.used = Some(used + bytes);
        Ok(())
    }
}

/// The error that a guest sees as "no space left".
pub(crate) fn full() -> io::Error {
    if cfg!(windows) {
        io::Error::from_raw_os_error(112)
    } else {
        io::Error::from_raw_os_error(28)
    }
}

/// Sums up a directory. Links are counted and not followed; what goes away meanwhile is not counted.
fn measure(directory: &Path) -> io::Result<u64> {
    let mut waiting = vec![directory.to_owned()];
    let (mut bytes, mut entries) = (0_u64, 0_u64);
    while let Some(next) = waiting.pop() {
        let listed = match fs::read_dir(&next) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in listed {
            let Ok(metadata) = entry.and_then(|entry| {
                let metadata = entry.metadata()?;
                if metadata.is_dir() {
                    waiting.push(entry.path());
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
            if entries > ENTRIES_MAX {
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
    fn what_was_removed_is_given_back_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("there"), [0; 1_000]).unwrap();
        let quota = DirectoryQuota::new(directory.path().to_owned(), 20_000);
        quota.reserve(10_000).unwrap();
        assert!(!quota.try_reserve(10_000));
        fs::write(directory.path().join("written"), [0; 10_000]).unwrap();
        assert!(quota.reserve(10_000).is_err(), "it is on disk");
        fs::remove_file(directory.path().join("written")).unwrap();
        // Until the pause after the last measuring is over.
        while quota.reserve(10_000).is_err() {
            std::thread::yield_now();
        }
    }
}
