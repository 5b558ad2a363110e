//! Granted directories: resolved and opened once, and counted while guests write to them.

mod area;
mod identity;
mod open_directory;
mod open_files;
mod quota;
mod resolve;
mod usage;

pub(crate) use area::{GrantableArea, WritableRoots, real_path};
pub(crate) use identity::{DirectoryIdentity, RecordedDirectory};
pub(crate) use open_directory::OpenDirectory;
pub(crate) use open_files::OpenFiles;
pub(crate) use quota::{DirectoryQuota, ENTRY_BYTES, Reservation, disk_full};
