//! Replacing files that other processes may be reading.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::private::private_options;

/// Replaces a file atomically: a reader sees either the old content or the new, also after a loss of power. Creates missing
/// directories.
///
/// # Errors
/// Errors of the file system. The old content then remains, unless only the flush of the directory failed.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    StagedFile::write(path, bytes)?.commit()
}

/// The new content of a file, written completely to a temporary file next to it. The temporary file is deleted on drop,
/// unless the content was committed.
#[derive(Debug)]
pub struct StagedFile {
    path: PathBuf,
    temporary_path: PathBuf,
    /// The temporary file. It is locked as long as this value exists, so that other processes do not take it for abandoned.
    temporary_file: Option<File>,
}

impl StagedFile {
    /// Writes the new content of `path`, with the default permissions of a new file. Creates missing directories.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write(path: &Path, bytes: &[u8]) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        Self::write_with(OpenOptions::new(), path, bytes)
    }

    /// Writes the new content of `path`, which only its owner may read and write. The directory must exist.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<Self> {
        Self::write_with(private_options(), path, bytes)
    }

    /// Writes the new content of `path`, with the permissions of the old file. If there is no old file, the new one has the
    /// default permissions. Creates missing directories.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write_with_same_permissions(path: &Path, bytes: &[u8]) -> io::Result<Self> {
        let permissions = match fs::metadata(path) {
            Ok(metadata) => metadata.permissions(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::write(path, bytes),
            Err(error) => return Err(error),
        };
        // Private at first, so that no other user can read the content before the permissions are set.
        let staged = Self::write_private(path, bytes)?;
        fs::set_permissions(&staged.temporary_path, permissions)?;
        Ok(staged)
    }

    fn write_with(mut options: OpenOptions, path: &Path, bytes: &[u8]) -> io::Result<Self> {
        remove_abandoned(path);
        let mut staged = Self {
            path: path.to_owned(),
            temporary_path: temporary_path(path),
            temporary_file: None,
        };
        let mut file = create_locked(&mut options, &staged.temporary_path)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        staged.temporary_file = Some(file);
        Ok(staged)
    }

    /// Replaces the file by the new content.
    ///
    /// # Errors
    /// Errors of the file system. The old content then remains, unless only the flush of the directory failed.
    pub fn commit(self) -> io::Result<()> {
        fs::rename(&self.temporary_path, &self.path)?;
        sync_directory_of(&self.path)
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        // After a commit, the temporary file no longer exists, and the error is ignored.
        let _ = fs::remove_file(&self.temporary_path);
    }
}

/// Creates a temporary file, and locks it. Replaces a file or link with the same name.
fn create_locked(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    loop {
        // An untrusted repository can contain a link with this name. The link is removed here, and `create_new` follows no link.
        if let Err(error) = fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let file = options.write(true).create_new(true).open(path)?;
        // Not every file system has locks. Without them, no file counts as abandoned.
        if file.try_lock().is_err() || path.exists() {
            return Ok(file);
        }
        // Another process has removed the file before it was locked.
    }
}

/// Removes the temporary files of `path` that killed processes have left behind: those of other processes that are not locked.
/// They can contain secrets.
fn remove_abandoned(path: &Path) {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let own_name = temporary_path(path);
    let prefix = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
    let Ok(entries) = fs::read_dir(directory.unwrap_or(Path::new("."))) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".new"));
        let is_temporary = process.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_temporary || own_name.file_name() == Some(&entry.file_name()) {
            continue;
        }
        let is_file = entry.file_type().is_ok_and(|file_type| file_type.is_file());
        if is_file && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns the path of the temporary file. Its name begins with a dot, so that scans of a plugin directory or a cache skip it.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    path.with_file_name(name)
}

/// Makes a rename in the directory of a file survive a loss of power.
#[cfg(unix)]
fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Does nothing, because a directory cannot be opened as a file on this platform.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "on Unix, the directory can fail to open")]
fn sync_directory_of(_path: &Path) -> io::Result<()> {
    Ok(())
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
        let temporary_path = directory.path().join(format!(".calc.wasm.{}.new", std::process::id()));
        std::os::unix::fs::symlink(&outside, &temporary_path).unwrap();
        replace_file(&file, b"new").unwrap();
        assert_eq!(fs::read(&outside).unwrap(), b"kept");
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(!file.is_symlink() && !temporary_path.exists());
    }

    #[test]
    fn temporary_files_of_killed_processes_are_removed_and_those_in_use_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path_of = |name: &str| directory.path().join(name);
        for name in [".s.toml.1.new", ".s.toml.2.new", ".other.toml.1.new", ".s.toml.x.new"] {
            fs::write(path_of(name), "left").unwrap();
        }
        let in_use = File::open(path_of(".s.toml.2.new")).unwrap();
        in_use.lock().unwrap();
        replace_file(&path_of("s.toml"), b"new").unwrap();
        let names = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, [".other.toml.1.new", ".s.toml.2.new", ".s.toml.x.new", "s.toml"]);
    }

    #[test]
    fn a_file_can_keep_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("new/mcp.json");
        let replace = |text: &str| {
            StagedFile::write_with_same_permissions(&file, text.as_bytes())
                .and_then(StagedFile::commit)
                .unwrap();
            fs::metadata(&file).unwrap().permissions().mode() & 0o777
        };
        replace("one");
        for mode in [0o600, 0o664] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(replace("two"), mode);
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
    }
}
