//! Packages on disk and what is known about them.

mod package;
mod scan;

pub use package::{Package, PackageStatus};
pub use scan::Registry;
