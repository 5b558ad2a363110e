//! Granted directories: opened once, and counted while guests write to them.

mod open_directory;
mod quota;

pub(crate) use open_directory::OpenDirectory;
pub(crate) use quota::{DirectoryQuota, ENTRY_BYTES, disk_full};
