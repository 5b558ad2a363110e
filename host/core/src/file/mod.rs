//! Files that other users or processes may write or read at the same time.
//!
//! [`read_file`] and [`read_text_file`] read untrusted files, [`read_private_text_file`] reads a file with secrets.
//! [`replace_file`] and [`StagedFile`] replace a file atomically; [`LockedFile`] is for a file that several processes change.
//! [`private_options`], [`create_private_file`] and [`create_private_directory`] are for files that only their owner may use.
//! All functions that access files block their thread.

mod locked_file;
mod private;
mod read;
mod staged_file;

pub use locked_file::LockedFile;
pub use private::{create_private_directory, create_private_file, private_options};
pub use read::{read_file, read_private_text_file, read_text_file};
pub use staged_file::{StagedFile, replace_file};

use std::path::{Path, PathBuf};

/// Returns the path of another file in the directory of `path`. Its name is the file name of `path` with `ending` appended.
///
/// ```
/// # use std::path::Path;
/// assert_eq!(toolwit_core::file::sibling(Path::new("a/grants.toml"), ".lock"), Path::new("a/grants.toml.lock"));
/// ```
#[must_use]
pub fn sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}
