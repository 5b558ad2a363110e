//! The record of granted directories, as they were when they were opened first.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::grants::directories::{DirectoryIdentity, RecordedDirectory};
use toolwit_core::file::{LockedFile, StagedFile, sibling};

/// The identity that each granted directory had when it was opened first, by its path in the grants file. The record is
/// a file next to the grants file; without a grants file, it is in memory.
///
/// The record outlives a writable grant. A link that the grant's plugin has left behind cannot lead to a different
/// directory.
#[derive(Debug, Default)]
pub(crate) struct DirectoryRecord {
    /// The grants file.
    grants: Option<PathBuf>,
    in_memory: HashMap<PathBuf, RecordedDirectory>,
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
    pub(crate) fn read(&self) -> io::Result<HashMap<PathBuf, RecordedDirectory>> {
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

    /// Adds directories that are not recorded yet, and updates those that no plugin could replace.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub(crate) fn add(&mut self, new: HashMap<PathBuf, RecordedDirectory>) -> io::Result<()> {
        if new.is_empty() {
            return Ok(());
        }
        let Some(grants) = &self.grants else {
            self.in_memory.extend(new);
            return Ok(());
        };
        let _lock = LockedFile::acquire(grants)?;
        // Another process may have recorded the directories meanwhile.
        let mut recorded = self.read()?;
        for (path, directory) in new {
            let earlier = recorded.entry(path).or_insert(directory);
            if !earlier.is_replaceable {
                *earlier = directory;
            }
        }
        write(grants, &recorded)
    }

    /// Removes the records of paths that lead to different directories now, because the operator grants them again.
    /// Returns whether there are any. The caller holds the lock of the grants file.
    ///
    /// # Errors
    /// If the record cannot be read or written.
    pub(super) fn remove_replaced(&self, now: &HashMap<PathBuf, DirectoryIdentity>) -> io::Result<bool> {
        let Some(grants) = &self.grants else {
            return Ok(false);
        };
        let mut recorded = self.read()?;
        let before = recorded.len();
        recorded.retain(|path, directory| now.get(path).is_none_or(|now| *now == directory.identity));
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

fn write(grants: &Path, recorded: &HashMap<PathBuf, RecordedDirectory>) -> io::Result<()> {
    let line = |(path, directory): (&PathBuf, &RecordedDirectory)| {
        let kind = if directory.is_replaceable {
            ""
        } else {
            NOT_REPLACEABLE_PREFIX
        };
        format!("{kind}{} {}\n", directory.identity, path.display())
    };
    let lines = recorded.iter().map(line);
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    StagedFile::write_private(&record_of(grants), lines.concat().as_bytes())?.commit()
}

/// The beginning of the line of a directory that no plugin could replace.
const NOT_REPLACEABLE_PREFIX: &str = "fixed ";

/// Parses a line: an identity, a space and a path. A rule's path has no line break.
fn parse(line: &str) -> io::Result<(PathBuf, RecordedDirectory)> {
    let fixed = line.strip_prefix(NOT_REPLACEABLE_PREFIX);
    let (identity, path) = fixed
        .unwrap_or(line)
        .split_once(' ')
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a line has no path"))?;
    let directory = RecordedDirectory {
        identity: identity.parse()?,
        is_replaceable: fixed.is_none(),
    };
    Ok((path.into(), directory))
}
