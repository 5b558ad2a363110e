//! The record of used grants.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::grants::Grant;
use toolwit_core::file::{LockedFile, StagedFile, sibling};

/// The identities of the used grants for one call or one conversation. The record is a file next to the grants file, with one
/// identity in each line. All processes share the file.
#[derive(Clone, Debug)]
pub(crate) struct UseRecord {
    grants_file: PathBuf,
}

impl UseRecord {
    /// Returns the record of a grants file. Neither file needs to exist.
    pub(crate) fn of(grants_file: &Path) -> Self {
        Self {
            grants_file: grants_file.to_owned(),
        }
    }

    /// Returns the path of the record.
    fn path(&self) -> PathBuf {
        sibling(&self.grants_file, ".used")
    }

    /// Reads the record.
    ///
    /// # Errors
    /// If the record exists but cannot be read, or has a damaged line, because the used grants are then unknown.
    pub(crate) fn read(&self) -> io::Result<HashSet<String>> {
        let text = match fs::read_to_string(self.path()) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashSet::new()),
            Err(error) => return Err(error),
        };
        if let Some(index) = text.lines().position(|line| !Grant::is_identity(line)) {
            let message = format!("line {} of {} is damaged", index + 1, self.path().display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Records the use of a grant. Returns `false` if this or another process has already used the grant.
    ///
    /// The record is replaced atomically under the lock of the grants file, so that an interrupted write leaves the previous
    /// record.
    ///
    /// # Errors
    /// If the record cannot be locked, read or written. The grant must not be used then.
    pub(crate) fn add(&self, identity: &str) -> io::Result<bool> {
        let _lock = LockedFile::acquire(&self.grants_file)?;
        let mut used = self.read()?;
        if !used.insert(identity.to_owned()) {
            return Ok(false);
        }
        let mut lines: Vec<_> = used.iter().map(|identity| format!("{identity}\n")).collect();
        lines.sort();
        StagedFile::write_private(&self.path(), lines.concat().as_bytes())?.commit()?;
        Ok(true)
    }

    /// Returns the result that [`UseRecord::add`] would return. Does not record a use.
    ///
    /// # Errors
    /// Those of [`UseRecord::add`].
    pub(crate) fn would_add(&self, identity: &str) -> io::Result<bool> {
        let _lock = LockedFile::acquire(&self.grants_file)?;
        // Checks that the record can be written. Dropping the staged file without a commit deletes it.
        StagedFile::write_private(&self.path(), b"")?;
        Ok(!self.read()?.contains(identity))
    }
}
