//! The record of the identities of granted directories, which reveals a directory that a plugin has replaced.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::grants::directories::{DirectoryIdentity, RecordedDirectory};
use toolwit_core::file::{LockedFile, StagedFile, sibling};

/// The identities of granted directories, by their paths in the grants file. If a plugin could replace a directory, its entry
/// has the identity of the directory when it was first opened. The entry of any other directory has the identity of the
/// directory when it was last opened. The record is a file next to the grants file. Without a grants file, it is in memory.
///
/// The entry of a directory inside a writable directory remains after the writable grant is revoked. Before that, the plugin
/// could replace the inner directory by a symbolic link to a different directory. Without the entry, the host would not notice
/// the replacement.
#[derive(Debug, Default)]
pub(crate) struct DirectoryRecord {
    grants_file: Option<PathBuf>,
    /// The entries, by path. Used only without a grants file.
    in_memory: HashMap<PathBuf, RecordedDirectory>,
}

impl DirectoryRecord {
    pub(crate) fn new(grants_file: Option<PathBuf>) -> Self {
        Self {
            grants_file,
            in_memory: HashMap::new(),
        }
    }

    /// Reads the entries, by path. A record that does not exist yet is empty.
    ///
    /// # Errors
    /// If the record exists but cannot be read or is damaged, because the recorded directories are then unknown.
    pub(crate) fn read(&self) -> io::Result<HashMap<PathBuf, RecordedDirectory>> {
        let Some(grants_file) = &self.grants_file else {
            return Ok(self.in_memory.clone());
        };
        let file = record_path(grants_file);
        let unusable = |error: io::Error| {
            let message = format!(
                "the record {} cannot be used: {error}; delete it to trust the current directories",
                file.display()
            );
            io::Error::new(error.kind(), message)
        };
        match fs::read_to_string(&file) {
            Ok(text) => text
                .lines()
                .map(parse_line)
                .collect::<io::Result<_>>()
                .map_err(unusable),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(HashMap::new()),
            Err(error) => Err(unusable(error)),
        }
    }

    /// Adds entries. If a path already has an entry, updates the earlier entry as [`RecordedDirectory::updated`] does.
    ///
    /// # Errors
    /// If the record cannot be locked, read or written.
    pub(crate) fn add(&mut self, entries: HashMap<PathBuf, RecordedDirectory>) -> io::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let Some(grants_file) = &self.grants_file else {
            merge(&mut self.in_memory, entries);
            return Ok(());
        };
        let _lock = LockedFile::acquire(grants_file)?;
        // Read under the lock, because another process may have added entries meanwhile.
        let mut recorded = self.read()?;
        merge(&mut recorded, entries);
        write_record(grants_file, &recorded)
    }

    /// Returns whether a path in `current` leads to a different directory than the recorded one. `current` has the present
    /// identities of directories, by path.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub(super) fn has_replaced_directory(&self, current: &HashMap<PathBuf, DirectoryIdentity>) -> io::Result<bool> {
        let recorded = self.read()?;
        Ok(recorded
            .iter()
            .any(|(path, directory)| is_replaced(path, directory, current)))
    }

    /// Runs `change`, which grants directories in the grants file. Accepts the granted directories that were replaced since they
    /// were recorded. `current` has the present identities of the granted directories, by path. The caller must hold the
    /// lock of the grants file.
    ///
    /// The entries of replaced directories are removed before `change` runs: as soon as the grants file has changed, other
    /// hosts compare its directories with the record. If `change` fails, the entries are restored.
    ///
    /// # Errors
    /// If the record cannot be read or written, and the errors of `change`.
    pub(super) fn accept_replaced(
        &self,
        current: &HashMap<PathBuf, DirectoryIdentity>,
        change: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let recorded = self.read()?;
        let mut remaining = recorded.clone();
        remaining.retain(|path, directory| !is_replaced(path, directory, current));
        let Some(grants_file) = self.grants_file.as_ref().filter(|_| remaining.len() < recorded.len()) else {
            return change();
        };
        write_record(grants_file, &remaining)?;
        change().inspect_err(|_| {
            if let Err(error) = write_record(grants_file, &recorded) {
                tracing::warn!(%error, "the record of granted directories could not be restored");
            }
        })
    }
}

fn merge(recorded: &mut HashMap<PathBuf, RecordedDirectory>, entries: HashMap<PathBuf, RecordedDirectory>) {
    for (path, directory) in entries {
        let earlier = recorded.entry(path).or_insert(directory);
        *earlier = earlier.updated(directory);
    }
}

/// Returns whether a recorded path leads to a different directory now.
fn is_replaced(path: &Path, directory: &RecordedDirectory, current: &HashMap<PathBuf, DirectoryIdentity>) -> bool {
    current
        .get(path)
        .is_some_and(|identity| !identity.matches_recorded(directory.identity))
}

fn record_path(grants_file: &Path) -> PathBuf {
    sibling(grants_file, ".directories")
}

fn write_record(grants_file: &Path, recorded: &HashMap<PathBuf, RecordedDirectory>) -> io::Result<()> {
    let format_line = |(path, directory): (&PathBuf, &RecordedDirectory)| {
        let prefix = if directory.was_inside_writable_directory {
            ""
        } else {
            FIXED_PREFIX
        };
        format!("{prefix}{} {}\n", directory.identity, path.display())
    };
    let lines = recorded.iter().map(format_line);
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    StagedFile::write_private(&record_path(grants_file), lines.concat().as_bytes())?.commit()
}

/// The beginning of the line of a directory that no plugin could replace.
const FIXED_PREFIX: &str = "fixed ";

/// Parses a line: an optional prefix, an identity, a space and a path. The path has no line break, because it comes from the
/// grants file, in which a path with a control character is invalid.
fn parse_line(line: &str) -> io::Result<(PathBuf, RecordedDirectory)> {
    let fixed_entry = line.strip_prefix(FIXED_PREFIX);
    let (identity, path) = fixed_entry
        .unwrap_or(line)
        .split_once(' ')
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a line has no path"))?;
    let directory = RecordedDirectory {
        identity: identity.parse()?,
        was_inside_writable_directory: fixed_entry.is_none(),
    };
    Ok((path.into(), directory))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_recorded_as_inside_a_writable_one_stays_recorded_as_that() {
        let directory = tempfile::tempdir().unwrap();
        for grants_file in [None, Some(directory.path().join("grants.toml"))] {
            let mut record = DirectoryRecord::new(grants_file);
            for was_inside_writable_directory in [true, false] {
                let opened = RecordedDirectory {
                    identity: "1:2".parse().unwrap(),
                    was_inside_writable_directory,
                };
                record.add(HashMap::from([("/data".into(), opened)])).unwrap();
            }
            assert!(record.read().unwrap()[Path::new("/data")].was_inside_writable_directory);
        }
    }
}
