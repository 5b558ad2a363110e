//! The grants file: its format, and the file on disk.

mod format;
mod grants_file;
#[cfg(test)]
mod grants_file_tests;
pub(crate) mod private_file;

pub use format::NewGrant;
pub use grants_file::{GrantsContent, GrantsFile, GrantsFileError, GrantsFileErrorReason};
pub(crate) use grants_file::{read_grants_file, used_grants};
pub use private_file::LockedFile;
