//! Writing files that other processes may be reading.

use std::ffi::OsString;
use std::fs;
use std::io;
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
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}
