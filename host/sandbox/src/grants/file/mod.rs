//! The grants file: its format, and the file on disk.

mod format;
mod grants_file;
pub(crate) mod private_file;

pub use format::NewGrant;
pub(crate) use grants_file::read_grants_file;
pub use grants_file::{GrantsFile, GrantsFileError, GrantsFileErrorReason};
