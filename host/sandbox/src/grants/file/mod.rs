//! The grants file: its format, and the file on disk.

mod directory_record;
mod error;
mod format;
mod grants_file;
#[cfg(test)]
mod grants_file_tests;
mod rule_changes;
mod rule_lookup;
pub(crate) mod use_record;
mod writable_record;

pub(crate) use directory_record::DirectoryRecord;
pub use error::{GrantsFileError, GrantsFileErrorReason};
pub use format::NewGrant;
pub use grants_file::{GrantsContent, GrantsFile};
pub(crate) use use_record::UseRecord;
pub use writable_record::WritableRecord;
