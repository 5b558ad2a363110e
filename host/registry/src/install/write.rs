//! Writing files that other processes may be reading.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Writes a file atomically: a reader sees either the old content or the new. Creates missing directories.
///
/// # Errors
/// Errors of the file system. The old file is unchanged then.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    // A scan skips hidden files.
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = write_new(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Writes a file that did not exist. A link with its name, which a repository of someone else can contain, is removed, and not followed.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)
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
