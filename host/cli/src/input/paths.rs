//! Paths in options, in forms that are valid in another directory or for another program.

use std::path::{Path, PathBuf};

use toolwit::{Error, ErrorKind, Phase};

/// Returns the absolute form of a path.
///
/// # Errors
/// If the current directory is unknown, or the path is empty.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|error| {
        let message = format!("the path `{}` cannot be used: {error}", path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
    })
}

/// Returns the absolute form of a path that may not be set.
pub(crate) fn absolute_if_set(path: Option<PathBuf>) -> Result<Option<PathBuf>, Error> {
    path.as_deref().map(absolute).transpose()
}

/// Returns a path as text.
///
/// # Errors
/// If it is not UTF-8.
pub(crate) fn path_text(path: &Path) -> Result<String, Error> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let message = format!("the path `{}` is not UTF-8", path.display());
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
    })
}
