//! The user's code cache.

use std::path::{Path, PathBuf};

use toolwit::sandbox::{CodeCache, CodeCacheLocation};
use toolwit::{Error, ErrorKind, Phase};

/// Returns the directory of the user's code cache.
pub(crate) fn directory() -> Result<PathBuf, Error> {
    CodeCacheLocation::User.directory().ok_or_else(|| {
        let message = "the cache directory is unknown, because there is no home directory";
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion("set XDG_CACHE_HOME")
    })
}

pub(crate) fn open(directory: &Path) -> Result<CodeCache, Error> {
    CodeCache::open(directory).map_err(|error| unusable(directory, &error))
}

pub(crate) fn unusable(directory: &Path, error: &std::io::Error) -> Error {
    let message = format!("the cache {} cannot be used: {error}", directory.display());
    Error::new(ErrorKind::Io, Phase::Registry, message)
        .with_suggestion("make the directory accessible to you alone, or delete it; it is created again")
}
