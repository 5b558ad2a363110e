//! Packages on disk and what is known about them.

mod catalog;
mod document;
mod health;
mod listing;
mod manifest;
mod package;
mod reading;
mod scan;
#[cfg(test)]
mod tests;
mod watched;

pub use catalog::{Catalog, Cutoff, Document, HITS_DEFAULT, HealthBoost, Hit, Query, SemanticIndex, Standing};
pub use health::verdict;
pub use manifest::{
    EntitySettings, EnvironmentNeed, Hints, LimitSettings, MANIFEST_SECTION, Manifest, RebindSetting, Tier,
    ToolSettings,
};
pub use package::{Package, PackageStatus};
pub use scan::Registry;
