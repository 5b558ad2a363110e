//! Files that only their owner may read.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use toolwit_core::text::sync_directory_of;

/// Returns the path of a file next to another one: its name with `ending` appended.
#[must_use]
pub(crate) fn sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

/// A file that this process may rewrite, because it holds the lock of the file until this value is dropped.
///
/// A change reads the file, changes the content and replaces it while it holds the lock, so that concurrent changes are not lost. A
/// reader needs no lock: it sees the old content or the new one. Only the owner of the file may read it.
///
/// ```
/// use toolwit_sandbox::LockedFile;
///
/// # fn main() -> std::io::Result<()> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("settings/count");
/// let file = LockedFile::acquire(&path)?;
/// let count = std::fs::read_to_string(&path).unwrap_or_default();
/// file.replace(format!("{count}+1").as_bytes())?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LockedFile {
    path: PathBuf,
    _lock: std::fs::File,
}

impl LockedFile {
    /// Waits for the lock, which is a file next to it. Creates the directory. The file itself need not exist.
    ///
    /// # Errors
    /// If the directory or the lock cannot be created, or the file cannot be locked.
    pub fn acquire(path: &Path) -> io::Result<Self> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory)?;
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: lock(&sibling(path, ".lock"))?,
        })
    }

    /// Replaces the file atomically.
    ///
    /// # Errors
    /// If the file cannot be written. The old content remains.
    pub fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        replace(&self.path, bytes)
    }
}

/// Replaces a file atomically. The caller holds the lock of this file, or of the one that it belongs to.
///
/// # Errors
/// If the file cannot be written. The old content remains.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary(path);
    let written = write_new(&temporary, bytes)
        .and_then(|()| std::fs::rename(&temporary, path))
        .and_then(|()| sync_directory_of(path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Checks that a file could be replaced, without changing it.
///
/// # Errors
/// If the new content could not be written next to it.
pub(super) fn check_replaceable(path: &Path) -> io::Result<()> {
    let temporary = temporary(path);
    write_new(&temporary, b"")?;
    std::fs::remove_file(temporary)
}

fn temporary(path: &Path) -> PathBuf {
    sibling(path, &format!(".{}.new", std::process::id()))
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let _ = std::fs::remove_file(path);
    let mut file = owner_only().create_new(true).write(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Waits for the lock of a file. It is held until the returned file is dropped or the process ends.
///
/// # Errors
/// If the file cannot be created or locked.
fn lock(path: &Path) -> io::Result<std::fs::File> {
    let file = owner_only().create(true).append(true).open(path)?;
    file.lock()?;
    Ok(file)
}

/// Opens a file to which lines are appended. Creates it if it does not exist.
///
/// # Errors
/// If the file cannot be opened.
pub(super) fn open_log(path: &Path) -> io::Result<std::fs::File> {
    owner_only().create(true).append(true).open(path)
}

/// Appends a line to an open file.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn append_line(mut log: &std::fs::File, line: &str) -> io::Result<()> {
    log.write_all(format!("{line}\n").as_bytes())?;
    log.sync_data()
}

fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}
