//! The directory in which machine code is cached.

use std::path::PathBuf;

use super::cache::CodeCache;

/// The directory in which machine code of compiled components is cached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CodeCacheLocation {
    /// `toolwit/code` in the user's cache directory (`$XDG_CACHE_HOME`, else `~/.cache`).
    #[default]
    User,
    /// This directory. It must belong to the user and deny access to others.
    Directory(PathBuf),
    /// No cache: every process compiles its components.
    Off,
}

impl CodeCacheLocation {
    /// Returns the path of the directory, or `None` without a cache.
    #[must_use]
    pub fn directory(&self) -> Option<PathBuf> {
        match self {
            Self::Off => None,
            Self::Directory(directory) => Some(directory.clone()),
            Self::User => user_cache_directory(),
        }
    }

    /// Opens the cache. A directory that cannot be used is reported with a warning.
    pub(crate) fn open(&self) -> Option<CodeCache> {
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

fn user_cache_directory() -> Option<PathBuf> {
    use etcetera::BaseStrategy;
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.cache_dir().join("toolwit").join("code"))
}
