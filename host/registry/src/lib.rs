//! Packages on disk and what is known about them.
//!
//! A [`Registry`] is what a look at plugin directories found; a [`LiveRegistry`] keeps up with them. Definitions,
//! docs and manifests are read from the bytes, and taken from the [`store`] where the files are as they were.
//! Nothing here compiles or runs a component but [`LiveRegistry::discover_dynamic_tools`], for plugins whose tools nobody knows before
//! they run.

mod ask;
mod catalog;
mod document;
mod health;
mod health_tool;
mod listing;
mod live;
mod manifest;
#[cfg(feature = "watch")]
mod notices;
mod pack;
mod package;
mod reading;
mod scan;
pub mod store;
#[cfg(test)]
mod tests;
mod view;
mod watch;

pub use ask::TOOLS_NOT_DISCOVERED;
pub use ask::{DiscoveryOutcome, DiscoveryTargets, DynamicDiscovery};
pub use catalog::{
    Catalog, Cutoff, Document, HITS_DEFAULT, HealthBoost, Hit, IndexedTool, Query, RankingSignals, SemanticIndex,
    TermExtractor, Terms,
};
pub use health::check_outcome;
pub use listing::MissingPath;
pub use live::{LiveRegistry, RefreshOutcome};
pub use manifest::MANIFEST_BYTES_MAX;
pub use manifest::{
    EntitySettings, EnvironmentNeed, Hints, LimitSettings, MANIFEST_SECTION, Manifest, RebindSetting, Tier,
    ToolSettings,
};
pub use pack::pack;
pub use package::{Package, PackageStatus};
pub use reading::inspect_package;
pub use view::Registry;
pub use watch::{WatchEvents, WatchGuard, WatchOptions};
