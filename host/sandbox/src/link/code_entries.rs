//! How much room cached machine code takes, and how it is bounded.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::code_cache::{CodeCache, private_file};

/// How much room machine code takes unless somebody says otherwise: some hundred components of a large toolchain.
pub const CODE_CACHE_BYTES_MAX: u64 = 2 << 30;

/// The file that holds what somebody said.
const CAP: &str = "bytes-max";

/// What code files and the files beside them end with.
const CODE: &str = ".code";
const HASH: &str = ".code.hash";

/// A temporary file that is older than this belongs to no process that still writes it.
const ABANDONED_AFTER: Duration = Duration::from_secs(3_600);

/// An entry counts as used again after this long, so that not every start writes to the disk.
const USED_AGAIN_AFTER: Duration = Duration::from_secs(3_600);

/// An entry of the cache.
pub(crate) struct Entry {
    pub(crate) name: String,
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// How much machine code is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct CodeCacheUsage {
    /// Components, once for each engine and version.
    pub entries: usize,
    /// What they take, in bytes.
    pub bytes: u64,
    /// What they may take, in bytes.
    pub bytes_max: u64,
}

impl CodeCache {
    /// Returns how much is kept.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn usage(&self) -> io::Result<CodeCacheUsage> {
        let entries = self.entries()?;
        Ok(CodeCacheUsage {
            entries: entries.len(),
            bytes: entries.iter().map(|entry| entry.bytes).sum(),
            bytes_max: self.bytes_max(),
        })
    }

    /// Returns the bound of the cache, in bytes.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        let said = fs::read_to_string(self.directory().join(CAP)).ok();
        said.and_then(|text| text.trim().parse().ok())
            .unwrap_or(CODE_CACHE_BYTES_MAX)
    }

    /// Sets the bound for this and all later processes, and drops what is beyond it.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn set_bytes_max(&self, bytes_max: u64) -> io::Result<CodeCacheUsage> {
        let path = self.directory().join(CAP);
        let temporary = self.directory().join(format!(".{CAP}.{}", std::process::id()));
        private_file(&temporary)?.write_all(bytes_max.to_string().as_bytes())?;
        fs::rename(&temporary, &path)?;
        self.shrink_to(bytes_max)
    }

    /// Drops entries, those used longest ago first, until the rest take no more than this. Returns what was dropped.
    ///
    /// Code that a process has mapped stays with it.
    ///
    /// # Errors
    /// When the directory cannot be read or written.
    pub fn shrink_to(&self, bytes_max: u64) -> io::Result<CodeCacheUsage> {
        self.remove_abandoned()?;
        let mut entries = self.entries()?;
        entries.sort_by_key(|entry| entry.used);
        let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let mut dropped = CodeCacheUsage {
            bytes_max,
            ..CodeCacheUsage::default()
        };
        for entry in entries {
            if bytes <= bytes_max {
                break;
            }
            // The code first: without it the hash is nothing.
            remove(&entry.path)?;
            remove(&entry.path.with_added_extension("hash"))?;
            bytes -= entry.bytes;
            dropped.entries += 1;
            dropped.bytes += entry.bytes;
        }
        Ok(dropped)
    }

    pub(crate) fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for file in fs::read_dir(self.directory())? {
            let file = file?;
            let Ok(name) = file.file_name().into_string() else {
                continue;
            };
            if name.starts_with('.') || !name.ends_with(CODE) {
                continue;
            }
            // Another process may be dropping it at this moment.
            let Ok(metadata) = file.metadata() else { continue };
            entries.push(Entry {
                name,
                path: file.path(),
                bytes: metadata.len(),
                used: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            });
        }
        Ok(entries)
    }

    /// Notes that an entry was used.
    pub(crate) fn used(&self, path: &Path) {
        let now = SystemTime::now();
        let is_noted = |modified: SystemTime| now.duration_since(modified).is_ok_and(|age| age < USED_AGAIN_AFTER);
        let touch = || {
            let file = File::options().append(true).open(path)?;
            if is_noted(file.metadata()?.modified()?) {
                return Ok(());
            }
            file.set_modified(now)
        };
        // A directory that cannot be written to forgets which entry was used; that costs order, not code.
        let _: io::Result<()> = touch();
    }

    /// Removes what a process that was killed left behind: temporary files, and hashes without code.
    fn remove_abandoned(&self) -> io::Result<()> {
        for file in fs::read_dir(self.directory())? {
            let file = file?;
            let name = file.file_name();
            let name = name.to_string_lossy();
            let is_lone_hash = name.ends_with(HASH) && !file.path().with_extension("").exists();
            let is_old = || {
                let modified = file.metadata().and_then(|metadata| metadata.modified());
                modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > ABANDONED_AFTER))
            };
            if (name.starts_with('.') || is_lone_hash) && is_old() {
                remove(&file.path())?;
            }
        }
        Ok(())
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
