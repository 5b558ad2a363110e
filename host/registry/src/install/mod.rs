//! Changing plugin directories: adding, removing and packing packages.

mod add;
mod pack;
mod remove;
mod write;

pub use add::{AddError, AddedPackage, NameConflict, add_packages};
pub use pack::pack;
pub use remove::RemovedPackage;
pub use write::write_atomically;

/// The files of a package, by extension. The component is written last: without it there is no package.
const FILE_EXTENSIONS: [&str; 3] = ["toml", "wit", "wasm"];
