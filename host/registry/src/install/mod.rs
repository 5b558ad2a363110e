//! Changing plugin directories: adding, removing and packing packages.

mod add_error;
mod index;
mod installation;
mod installed_versions;
mod pack;
mod package_files;
mod remote_file;
mod remove;
mod replacement;
mod source;
#[cfg(test)]
mod tests;

pub use add_error::AddError;
pub use installation::{AddedPackage, Installation, NameConflict};
pub use pack::pack;
pub use remote_file::{Download, FileDigest, FileUrl, RemoteFile};
pub use remove::RemovedPackage;
pub use source::{PackageQuery, PackageSource};

use crate::requested::{CAPABILITIES_EXTENSION, POLICY_EXTENSION};

const MANIFEST_EXTENSION: &str = "toml";
const WIT_EXTENSION: &str = "wit";

/// The extensions of a package's files, in the order in which the files are written. The component is written last: without it, the
/// other files are not a package.
const FILE_EXTENSIONS: [&str; 5] = [
    MANIFEST_EXTENSION,
    WIT_EXTENSION,
    POLICY_EXTENSION,
    CAPABILITIES_EXTENSION,
    crate::package::EXTENSION,
];
