//! Files and directories that only their owner may use.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Returns options that create a file that only its owner can read and write. On platforms other than Unix, the options set
/// no permissions.
#[must_use]
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates an empty file that only its owner can read and write. An existing file does not change.
///
/// # Errors
/// If the file cannot be created.
pub fn create_private_file(path: &Path) -> io::Result<()> {
    match private_options().write(true).create_new(true).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Creates a directory and the missing directories above it. Only their owner can enter them. Existing directories keep their
/// permissions. On platforms other than Unix, no permissions are set.
///
/// # Errors
/// If a directory cannot be created.
pub fn create_private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}
