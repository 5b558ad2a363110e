//! Changing plugin directories: adding, removing and packing packages.

mod add;
mod pack;
mod remove;
mod write;

pub use add::{AddError, AddedPackage, NameConflict, add_packages};
pub use pack::pack;
pub use remove::RemovedPackage;
pub use write::write_atomically;

const MANIFEST_EXTENSION: &str = "toml";
const WIT_EXTENSION: &str = "wit";

/// The extensions of a package's files. The component is written last, because it makes the files a package.
const FILE_EXTENSIONS: [&str; 3] = [MANIFEST_EXTENSION, WIT_EXTENSION, crate::package::EXTENSION];
