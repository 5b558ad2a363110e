//! Writing files that other processes may be reading.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use toolwit_core::text::sync_directory_of;

/// Writes a file atomically: a reader sees either the old content or the new, also after a loss of power. Creates missing
/// directories.
///
/// # Errors
/// Errors of the file system. The old file is unchanged then.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    StagedFile::write(path, bytes)?.commit()
}

/// The new content of a file, complete and on the disk next to it. It is deleted on drop unless it was committed.
pub(super) struct StagedFile {
    path: PathBuf,
    temporary: PathBuf,
}

impl StagedFile {
    /// Writes the new content of `path`. Creates missing directories.
    pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        // A scan skips hidden files.
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}.new", std::process::id()));
        let staged = Self {
            path: path.to_owned(),
            temporary: path.with_file_name(name),
        };
        write_new(&staged.temporary, bytes)?;
        Ok(staged)
    }

    /// Replaces the file by the new content.
    pub(super) fn commit(self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.path)?;
        sync_directory_of(&self.path)
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        // It does not exist after a commit.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Writes a file that did not exist. A link with its name, which a repository of someone else can contain, is removed, and not followed.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: L20
    #[test]
    fn a_link_with_the_name_of_the_temporary_file_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (outside, file) = (directory.path().join("outside"), directory.path().join("calc.wasm"));
        fs::write(&outside, "kept").unwrap();
        let temporary = directory.path().join(format!(".calc.wasm.{}.new", std::process::id()));
        std::os::unix::fs::symlink(&outside, &temporary).unwrap();
        write_atomically(&file, b"new").unwrap();
        assert_eq!(fs::read(&outside).unwrap(), b"kept");
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(!file.is_symlink() && !temporary.exists());
    }
}
