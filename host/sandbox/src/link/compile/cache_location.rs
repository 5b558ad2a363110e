//! The directory in which machine code is cached, and the operations on it.

use std::io;
use std::path::PathBuf;

use super::cache::CodeCache;
use super::cache_entries::{CodeCacheUsage, RemovedCacheEntries};
use toolwit_core::{Error, ErrorKind, Phase};

/// The directory in which machine code of compiled components is cached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CodeCacheLocation {
    /// `toolwit/code` in the user's cache directory. On Unix, the cache directory is `$XDG_CACHE_HOME`, or `~/.cache` if this
    /// variable is not set.
    #[default]
    User,
    /// A directory that belongs to the user and denies access to others.
    Directory(PathBuf),
    /// No cache: every process compiles its components.
    Off,
}

/// A change to a code cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeCacheChange {
    /// Removes the least recently used entries until the remaining ones take at most this many bytes.
    ShrinkTo(u64),
    /// Sets the limit in bytes for all processes, and then removes entries as [`ShrinkTo`](Self::ShrinkTo) does.
    SetMaximum(u64),
}

/// The state of a code cache.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeCacheReport {
    /// The directory of the cache.
    pub directory: PathBuf,
    /// The number and size of its entries, and the limit.
    pub usage: CodeCacheUsage,
    /// The entries that the change removed. `None` if no change was requested.
    pub removed: Option<RemovedCacheEntries>,
    /// Whether the directory is on a file system that is mounted with `noexec`. Its machine code is copied into memory, instead of
    /// mapped.
    pub is_on_noexec_mount: bool,
}

impl CodeCacheLocation {
    /// Returns the path of the directory. Returns `None` for [`Off`](Self::Off), and for [`User`](Self::User) if the user has
    /// no home directory.
    #[must_use]
    pub fn directory(&self) -> Option<PathBuf> {
        match self {
            Self::Off => None,
            Self::Directory(directory) => Some(directory.clone()),
            Self::User => user_cache_directory(),
        }
    }

    /// Applies the change, if any, and returns the state of the cache. Creates the directory if it does not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the cache is off or its directory is unknown; [`ErrorKind::Io`] if the directory cannot be
    /// used.
    pub async fn manage(&self, change: Option<CodeCacheChange>) -> Result<CodeCacheReport, Error> {
        let location = self.clone();
        let task = tokio::task::spawn_blocking(move || location.manage_blocking(change));
        task.await.unwrap_or_else(|error| {
            let message = "managing the code cache failed unexpectedly";
            Err(Error::new(ErrorKind::Internal, Phase::Registry, message).with_source(error))
        })
    }

    fn manage_blocking(&self, change: Option<CodeCacheChange>) -> Result<CodeCacheReport, Error> {
        let directory = self.directory().ok_or_else(|| self.no_directory_error())?;
        let apply = || -> io::Result<(CodeCacheUsage, Option<RemovedCacheEntries>)> {
            let cache = CodeCache::open(&directory)?;
            let removed = match change {
                None => None,
                Some(CodeCacheChange::ShrinkTo(bytes)) => Some(cache.shrink_to(bytes)?),
                Some(CodeCacheChange::SetMaximum(bytes)) => Some(cache.set_bytes_max(bytes)?),
            };
            Ok((cache.usage()?, removed))
        };
        let (usage, removed) = apply().map_err(|error| {
            let message = format!("the code cache {} cannot be used: {error}", directory.display());
            Error::new(ErrorKind::Io, Phase::Registry, message)
                .with_suggestion("make the directory accessible to you alone, or delete it; it is created again")
                .with_source(error)
        })?;
        Ok(CodeCacheReport {
            is_on_noexec_mount: is_on_noexec_mount(&directory),
            directory,
            usage,
            removed,
        })
    }

    /// Returns the error for a location without a directory.
    fn no_directory_error(&self) -> Error {
        let (message, suggestion) = match self {
            Self::Off => (
                "there is no cache of machine code, because it is off",
                "choose `CodeCacheLocation::User` or `CodeCacheLocation::Directory`",
            ),
            Self::User | Self::Directory(_) => (
                "the cache directory is unknown, because there is no home directory",
                "set the environment variable HOME, or USERPROFILE on Windows",
            ),
        };
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(suggestion)
    }

    /// Opens the cache. Returns `None` if the location has no directory, or if the directory cannot be used. In the second case
    /// it also logs a warning.
    #[must_use]
    pub fn open(&self) -> Option<CodeCache> {
        let directory = self.directory()?;
        match CodeCache::open(&directory) {
            Ok(cache) => Some(cache),
            Err(error) => {
                tracing::warn!(directory = %directory.display(), %error, "machine code is not cached");
                None
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn is_on_noexec_mount(directory: &std::path::Path) -> bool {
    use rustix::fs::{StatVfsMountFlags, statvfs};
    statvfs(directory).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

#[cfg(not(target_os = "linux"))]
fn is_on_noexec_mount(_directory: &std::path::Path) -> bool {
    false
}

fn user_cache_directory() -> Option<PathBuf> {
    use etcetera::BaseStrategy;
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.cache_dir().join("toolwit").join("code"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_cache_with_a_directory_can_be_managed_and_the_error_names_the_reason() {
        let error = CodeCacheLocation::Off.manage(None).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration);
        assert!(error.message.contains("it is off"), "{error}");
        assert!(!error.message.contains("home directory"), "{error}");

        let directory = tempfile::tempdir().unwrap();
        let location = CodeCacheLocation::Directory(directory.path().join("code"));
        assert_eq!(
            location.manage(None).await.unwrap().directory,
            directory.path().join("code")
        );
    }
}
