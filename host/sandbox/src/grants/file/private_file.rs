//! Files that only their owner may read.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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
        let temporary = sibling(&self.path, &format!(".{}.new", std::process::id()));
        let written = write_new(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, &self.path));
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }
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
pub(crate) fn lock(path: &Path) -> io::Result<std::fs::File> {
    let file = owner_only().create(true).append(true).open(path)?;
    file.lock()?;
    Ok(file)
}

/// Appends a line to a file.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn append_line(path: &Path, line: &str) -> io::Result<()> {
    let mut file = owner_only().create(true).append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_data()
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
