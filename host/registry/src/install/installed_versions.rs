//! The record of the versions of downloaded components whose manifest has no version.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use semver::Version;

use toolwit_core::file::{LockedFile, read_file};

/// The maximum size of the record, in bytes.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// The name of the record in a plugin directory. It begins with a dot, so that scans of the directory skip the file.
const FILE_NAME: &str = ".versions.json";

/// The versions that an index listed for the components in a plugin directory, by the digest of the component.
///
/// Without this record, an index that lists only old releases would replace a newer component unnoticed, because such a component
/// does not contain its version.
pub(super) struct InstalledVersions {
    path: PathBuf,
}

impl InstalledVersions {
    /// Returns the record of a plugin directory.
    pub(super) fn of_directory(directory: &Path) -> Self {
        Self {
            path: directory.join(FILE_NAME),
        }
    }

    /// Returns the version of the component with this digest, if it is recorded.
    ///
    /// # Errors
    /// If the record exists, and cannot be read or is damaged.
    pub(super) fn version_of(&self, digest: &str) -> io::Result<Option<Version>> {
        Ok(self.read()?.remove(digest))
    }

    /// Records the version of a component. Creates missing directories.
    ///
    /// # Errors
    /// If the record cannot be read, is damaged or cannot be written.
    pub(super) fn record(&self, digest: &str, version: &Version) -> io::Result<()> {
        let file = LockedFile::acquire(&self.path)?;
        let mut versions = self.read()?;
        versions.insert(digest.to_owned(), version.clone());
        file.replace(&serde_json::to_vec(&versions)?)
    }

    fn read(&self) -> io::Result<BTreeMap<String, Version>> {
        let text = match read_file(&self.path, RECORD_BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(self.unusable(&error)),
        };
        serde_json::from_slice(&text).map_err(|error| self.unusable(&error))
    }

    fn unusable(&self, error: &dyn std::fmt::Display) -> io::Error {
        io::Error::other(format!("the versions in {} are unknown: {error}", self.path.display()))
    }
}
