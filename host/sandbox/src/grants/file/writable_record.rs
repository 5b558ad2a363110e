//! The record of the directories that grants made writable, which reveals where a plugin may have left links and files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::grants::directories::{DirectoryIdentity, writable_directory_of};
use toolwit_core::file::{LockedFile, sibling};

/// The directories that hosts opened for plugins to write to. An entry remains after its grant was revoked. Hosts with
/// different grants files can share one record.
///
/// A plugin may have left links and files in such a directory. A host follows no link in it, and a program should not use
/// a file in it as its configuration.
///
/// ```
/// use toolwit_sandbox::WritableRecord;
///
/// # let directory = tempfile::tempdir().unwrap();
/// let record = WritableRecord::new(directory.path().join("writable-directories"));
/// assert!(record.directory_around(&directory.path().join("policy.toml")).unwrap().is_none());
/// ```
#[derive(Clone, Debug, Default)]
pub struct WritableRecord {
    /// The file with the record. `None` for a record in memory.
    path: Option<PathBuf>,
    in_memory: Vec<DirectoryIdentity>,
}

impl WritableRecord {
    /// Creates a record in a file, which need not exist.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
            in_memory: Vec::new(),
        }
    }

    /// Creates the record next to a grants file, or in memory without a grants file.
    pub(crate) fn next_to(grants_file: Option<&Path>) -> Self {
        Self {
            path: grants_file.map(|file| sibling(file, ".writable")),
            in_memory: Vec::new(),
        }
    }

    /// Returns the real path of the directory of a file, if a plugin could write to the directory or replace it.
    ///
    /// # Errors
    /// If the record exists but cannot be read or is damaged, and for a path with a link that a plugin could create.
    pub fn directory_around(&self, file: &Path) -> io::Result<Option<PathBuf>> {
        let recorded = self.read()?;
        if recorded.is_empty() {
            return Ok(None);
        }
        writable_directory_of(file, recorded)
    }

    /// Checks that the record can be read.
    ///
    /// # Errors
    /// If the record exists but cannot be read or is damaged.
    pub fn check(&self) -> io::Result<()> {
        self.read().map(drop)
    }

    /// Reads the identities of the recorded directories. A record that does not exist yet is empty.
    ///
    /// # Errors
    /// If the record exists but cannot be read or is damaged, because the recorded directories are then unknown.
    pub(crate) fn read(&self) -> io::Result<Arc<[DirectoryIdentity]>> {
        let Some(path) = &self.path else {
            return Ok(self.in_memory.as_slice().into());
        };
        let unusable = |error: io::Error| {
            let message = format!(
                "the record {} cannot be used: {error}; delete it if no plugin could write to a directory that you use now",
                path.display()
            );
            io::Error::new(error.kind(), message)
        };
        match fs::read_to_string(path) {
            Ok(text) => text
                .lines()
                .map(parse_line)
                .collect::<io::Result<_>>()
                .map_err(unusable),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Arc::default()),
            // A directory of another user, such as the home directory of `root`, has no record of this user.
            Err(_) if fs::symlink_metadata(path).is_err() => Ok(Arc::default()),
            Err(error) => Err(unusable(error)),
        }
    }

    /// Adds the directories that are not recorded yet, with their paths.
    ///
    /// # Errors
    /// If the record cannot be locked, read or written.
    pub(crate) fn add(&mut self, directories: &[(PathBuf, DirectoryIdentity)]) -> io::Result<()> {
        let is_new = |recorded: &[DirectoryIdentity], identity: &DirectoryIdentity| !recorded.contains(identity);
        let Some(path) = &self.path else {
            for (_, identity) in directories {
                if is_new(&self.in_memory, identity) {
                    self.in_memory.push(*identity);
                }
            }
            return Ok(());
        };
        let recorded = self.read()?;
        if !directories.iter().any(|(_, identity)| is_new(&recorded, identity)) {
            return Ok(());
        }
        let file = LockedFile::acquire(path)?;
        // Read under the lock, because another process may have added entries meanwhile.
        let mut recorded = self.read()?.to_vec();
        let mut text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        for (directory, identity) in directories {
            if is_new(&recorded, identity) {
                // The path is for people. A line break in it must not begin another entry.
                let directory = directory.to_string_lossy();
                text.push_str(&format!("{identity} {}\n", directory.escape_debug()));
                recorded.push(*identity);
            }
        }
        file.replace(text.as_bytes())
    }
}

/// Parses a line: an identity, a space and a path.
fn parse_line(line: &str) -> io::Result<DirectoryIdentity> {
    line.split(' ').next().unwrap_or_default().parse()
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::grants::directories::identity_of;

    fn entry(directory: &Path) -> (PathBuf, DirectoryIdentity) {
        (directory.to_owned(), identity_of(directory).unwrap())
    }

    #[test]
    fn a_file_in_a_directory_that_was_ever_writable_is_found() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        for name in ["work/in", "other"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for (target, link) in [
            ("work/in", "link"),
            ("../other", "work/out"),
            ("work/mcp.toml", "mcp.toml"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let mut record = WritableRecord::new(root.join("record"));
        let found = |record: &WritableRecord, file: &str| record.directory_around(&root.join(file));
        assert_eq!(found(&record, "work/mcp.toml").unwrap(), None);
        record.add(&[entry(&root.join("work"))]).unwrap();
        for (file, directory) in [
            ("work/mcp.toml", "work"),
            ("work/in/mcp.toml", "work/in"),
            ("link/mcp.toml", "work/in"),
            ("mcp.toml", "work"),
        ] {
            assert_eq!(found(&record, file).unwrap(), Some(root.join(directory)), "{file}");
        }
        let error = found(&record, "work/out/mcp.toml").unwrap_err();
        assert!(error.to_string().contains("is a link"), "{error}");
        for file in ["other/mcp.toml", "missing/mcp.toml"] {
            assert_eq!(found(&record, file).unwrap(), None, "{file}");
        }
        fs::rename(root.join("work"), root.join("moved")).unwrap();
        assert_eq!(found(&record, "moved/mcp.toml").unwrap(), Some(root.join("moved")));
    }

    #[test]
    fn entries_are_added_once_and_a_damaged_record_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("record");
        let entry = entry(root.path());
        for mut record in [WritableRecord::next_to(None), WritableRecord::new(&path)] {
            for _ in 0..2 {
                record.add(std::slice::from_ref(&entry)).unwrap();
                assert_eq!(&*record.read().unwrap(), [entry.1]);
            }
        }
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
        fs::write(&path, "damaged\n").unwrap();
        let mut record = WritableRecord::new(&path);
        assert!(record.read().is_err() && record.add(&[entry]).is_err());
        let error = record.directory_around(&path).unwrap_err();
        assert!(error.to_string().contains("delete it"), "{error}");
    }
}
