//! Packages on disk and what is known about them.
//!
//! A [`Registry`] is what a look at plugin directories found; a [`LiveRegistry`] keeps up with them. Nothing here compiles
//! or runs a component: definitions, docs and manifests are read from the bytes, and taken from the
//! [`store`](crate::store) where the files are as they were.

mod catalog;
mod document;
mod health;
mod health_tool;
mod listing;
mod live;
mod manifest;
#[cfg(feature = "store")]
mod notices;
mod pack;
mod package;
mod reading;
mod scan;
#[cfg(test)]
mod tests;
mod view;
mod watch;

pub use catalog::{
    Catalog, Cutoff, Document, HITS_DEFAULT, HealthBoost, Hit, Indexed, Query, SemanticIndex, Standing, TermReader,
    Terms,
};
pub use health::verdict;
pub use listing::Absent;
pub use live::{LiveRegistry, Refreshed};
pub use manifest::{
    EntitySettings, EnvironmentNeed, Hints, LimitSettings, MANIFEST_SECTION, Manifest, RebindSetting, Tier,
    ToolSettings,
};
pub use pack::pack;
pub use package::{Package, PackageStatus};
pub use reading::inspect_package;
pub use view::Registry;
pub use watch::{WatchEvents, WatchOptions, Watching};
