//! The entries of the code cache, and the limit on their size.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::cache::{CodeCache, write_atomically};
use toolwit_core::limits::CODE_CACHE_BYTES_MAX;

/// The file with the limit that [`CodeCache::set_bytes_max`] sets.
const LIMIT_FILE: &str = "bytes-max";

/// The suffix of the file with the code of an entry.
const CODE_SUFFIX: &str = ".code";

/// The suffix of the file with the hash of an entry.
const HASH_SUFFIX: &str = ".code.hash";

/// The age at which a temporary file counts as abandoned by its process.
const ABANDONED_AFTER: Duration = Duration::from_secs(3_600);

/// The minimum interval between two updates of the time of an entry's last use, so that not every use writes to the disk.
const TOUCH_INTERVAL: Duration = Duration::from_secs(3_600);

/// An entry of the cache.
pub(crate) struct CodeCacheEntry {
    pub(crate) name: String,
    path: PathBuf,
    bytes: u64,
    last_use: SystemTime,
}

/// The number and size of the entries of a code cache, and the limit on their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct CodeCacheUsage {
    /// The number of entries: one for each component, engine and version of wasmtime.
    pub entries: usize,
    /// The size of the machine code of the entries, in bytes.
    pub bytes: u64,
    /// The limit on the size of the machine code of all entries, in bytes.
    pub bytes_max: u64,
}

/// The number and size of the entries that were removed from a code cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovedCacheEntries {
    /// The number of removed entries.
    pub entries: usize,
    /// The size of their machine code, in bytes.
    pub bytes: u64,
}

impl CodeCache {
    /// Returns the number and size of the entries, and the limit.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn usage(&self) -> io::Result<CodeCacheUsage> {
        let entries = self.entries()?;
        Ok(CodeCacheUsage {
            entries: entries.len(),
            bytes: entries.iter().map(|entry| entry.bytes).sum(),
            bytes_max: self.bytes_max(),
        })
    }

    /// Returns the limit of the cache, in bytes: the limit that [`set_bytes_max`](Self::set_bytes_max) stored, or otherwise the
    /// default.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        let text = fs::read_to_string(self.directory().join(LIMIT_FILE)).ok();
        text.and_then(|text| text.trim().parse().ok())
            .unwrap_or(CODE_CACHE_BYTES_MAX)
    }

    /// Sets the limit of the cache for all processes, and removes entries as [`shrink_to`](Self::shrink_to) does. Returns the
    /// number and size of the removed entries.
    ///
    /// # Errors
    /// If the directory cannot be read or written.
    pub fn set_bytes_max(&self, bytes_max: u64) -> io::Result<RemovedCacheEntries> {
        write_atomically(&self.directory().join(LIMIT_FILE), bytes_max.to_string().as_bytes())?;
        self.shrink_to(bytes_max)
    }

    /// Removes the least recently used entries until the remaining ones take at most this many bytes. Returns the number and
    /// size of the removed entries.
    ///
    /// A process that has mapped a removed entry can still use the entry. Old files that killed processes left behind are removed
    /// too.
    ///
    /// # Errors
    /// If the directory cannot be read or written.
    pub fn shrink_to(&self, bytes_max: u64) -> io::Result<RemovedCacheEntries> {
        self.remove_abandoned()?;
        let mut entries = self.entries()?;
        entries.sort_by_key(|entry| entry.last_use);
        let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let mut removed = RemovedCacheEntries::default();
        for entry in entries {
            if bytes <= bytes_max {
                break;
            }
            // Remove the code first. If the process is killed in between, the hash without code is ignored.
            remove_if_exists(&entry.path)?;
            remove_if_exists(&entry.path.with_added_extension("hash"))?;
            bytes -= entry.bytes;
            removed.entries += 1;
            removed.bytes += entry.bytes;
        }
        Ok(removed)
    }

    /// Lists the entries, whether they are valid or not.
    pub(crate) fn entries(&self) -> io::Result<Vec<CodeCacheEntry>> {
        let mut entries = Vec::new();
        for file in fs::read_dir(self.directory())? {
            let file = file?;
            let Ok(name) = file.file_name().into_string() else {
                continue;
            };
            if name.starts_with('.') || !name.ends_with(CODE_SUFFIX) {
                continue;
            }
            // Another process may have removed the file in the meantime.
            let Ok(metadata) = file.metadata() else { continue };
            entries.push(CodeCacheEntry {
                name,
                path: file.path(),
                bytes: metadata.len(),
                last_use: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            });
        }
        Ok(entries)
    }

    /// Records the use of an entry, so that it is removed after entries that were used earlier.
    pub(super) fn touch(&self, path: &Path) {
        let now = SystemTime::now();
        let is_recent = |modified: SystemTime| now.duration_since(modified).is_ok_and(|age| age < TOUCH_INTERVAL);
        let update = || {
            let file = File::options().append(true).open(path)?;
            if is_recent(file.metadata()?.modified()?) {
                return Ok(());
            }
            file.set_modified(now)
        };
        // A failure affects only the order of removal.
        let _: io::Result<()> = update();
    }

    /// Removes files that killed processes left behind and that are older than [`ABANDONED_AFTER`]: temporary files, and hashes
    /// without code.
    fn remove_abandoned(&self) -> io::Result<()> {
        for file in fs::read_dir(self.directory())? {
            let file = file?;
            let name = file.file_name();
            let name = name.to_string_lossy();
            let is_lone_hash = name.ends_with(HASH_SUFFIX) && !file.path().with_extension("").exists();
            let is_old = || {
                let modified = file.metadata().and_then(|metadata| metadata.modified());
                modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > ABANDONED_AFTER))
            };
            if (name.starts_with('.') || is_lone_hash) && is_old() {
                remove_if_exists(&file.path())?;
            }
        }
        Ok(())
    }
}

/// Removes a file, if it exists.
fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
