//! Granted directories: the host resolves their paths and opens them when it reads the grants, and counts the bytes that guests
//! write to them.

mod grantable_directories;
mod identity;
mod open_directory;
mod open_files;
mod open_path;
mod quota;
mod usage;

pub(crate) use grantable_directories::{GrantableDirectories, WritableRoots};
pub(crate) use identity::{DirectoryIdentity, DirectoryInode, RecordedDirectory};
pub(crate) use open_directory::OpenDirectory;
pub(crate) use open_files::OpenFiles;
#[cfg(test)]
pub(crate) use open_path::identity_of;
pub(crate) use open_path::{paths_to, writable_directory_of};
pub(crate) use quota::{DirectoryQuota, ENTRY_BYTES, Reservation, disk_full};
