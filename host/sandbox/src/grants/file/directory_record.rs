//! The record of granted directories that a plugin could replace.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::private_file::{self, LockedFile, sibling};
use crate::grants::directories::DirectoryIdentity;

/// The identities of granted directories inside writable ones, by their paths in the grants file, from when each was opened
/// first: a file next to the grants file. Without a grants file, the record is in memory.
///
/// It outlives the writable grant. A link that its plugin has left behind is never followed.
#[derive(Debug, Default)]
pub(crate) struct DirectoryRecord {
    /// The grants file.
    grants: Option<PathBuf>,
    in_memory: HashMap<PathBuf, DirectoryIdentity>,
}

impl DirectoryRecord {
    pub(crate) fn new(grants: Option<PathBuf>) -> Self {
        Self {
            grants,
            in_memory: HashMap::new(),
        }
    }

    /// Reads the recorded identities.
    ///
    /// # Errors
    /// If the record exists but cannot be read or is damaged, because the granted directories are then unknown.
    pub(crate) fn read(&self) -> io::Result<HashMap<PathBuf, DirectoryIdentity>> {
        let Some(grants) = &self.grants else {
            return Ok(self.in_memory.clone());
        };
        let file = record_of(grants);
        let damaged = |error: io::Error| {
            let why = format!(
                "the record {} cannot be used: {error}; without it the current directories are trusted",
                file.display()
            );
            io::Error::new(error.kind(), why)
        };
        match fs::read_to_string(&file) {
            Ok(text) => text.lines().map(parse).collect::<io::Result<_>>().map_err(damaged),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(HashMap::new()),
            Err(error) => Err(damaged(error)),
        }
    }

    /// Adds directories that are not recorded yet.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub(crate) fn add(&mut self, new: HashMap<PathBuf, DirectoryIdentity>) -> io::Result<()> {
        if new.is_empty() {
            return Ok(());
        }
        let Some(grants) = &self.grants else {
            self.in_memory.extend(new);
            return Ok(());
        };
        let _lock = LockedFile::acquire(grants)?;
        // Another process may have recorded them meanwhile.
        let mut recorded = self.read()?;
        for (path, identity) in new {
            recorded.entry(path).or_insert(identity);
        }
        write(grants, &recorded)
    }

    /// Forgets directories that the operator grants again. Returns whether any was recorded. The caller holds the lock of the grants
    /// file.
    ///
    /// # Errors
    /// If the record cannot be read or written.
    pub(super) fn forget<'a>(&self, paths: impl Iterator<Item = &'a Path>) -> io::Result<bool> {
        let Some(grants) = &self.grants else {
            return Ok(false);
        };
        let mut recorded = self.read()?;
        let before = recorded.len();
        for path in paths {
            recorded.remove(path);
        }
        if recorded.len() == before {
            return Ok(false);
        }
        write(grants, &recorded)?;
        Ok(true)
    }
}

fn record_of(grants: &Path) -> PathBuf {
    sibling(grants, ".directories")
}

fn write(grants: &Path, recorded: &HashMap<PathBuf, DirectoryIdentity>) -> io::Result<()> {
    let lines = recorded
        .iter()
        .map(|(path, identity)| format!("{identity} {}\n", path.display()));
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    private_file::replace(&record_of(grants), lines.concat().as_bytes())
}

/// Parses a line: an identity, a space and a path. A rule's path has no line break.
fn parse(line: &str) -> io::Result<(PathBuf, DirectoryIdentity)> {
    let (identity, path) = line
        .split_once(' ')
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a line has no path"))?;
    Ok((path.into(), identity.parse()?))
}
