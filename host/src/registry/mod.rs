//! Packages on disk and what is known about them.

mod catalog;
mod package;
mod scan;

pub use catalog::{Catalog, Cutoff, Document, HITS_DEFAULT, HealthBoost, Hit, Query, SemanticIndex, Standing};
pub use package::{Package, PackageStatus};
pub use scan::Registry;
