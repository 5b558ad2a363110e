//! Packages on disk: reading, searching, installing and reloading them.
//!
//! A package is a component file with an optional manifest and WIT file next to it. The data flow of this crate:
//!
//! ```text
//! plugin directories ── scan ──┬── manifest ──┐
//!                              └── sandbox ───┴── Registry ── catalog (search)
//!                                     ▲              │
//!                                     └─── store ────┴── LiveRegistry ── watch, discovery
//! ```
//!
//! - `scan` lists the files, reads those that changed and takes the others from the store. It compiles nothing and runs no
//!   guest code.
//! - [`Manifest`]: the metadata that the author of a package declares in addition to its WIT.
//! - [`Project`]: the settings of a project in `toolwit.toml`. [`OperatorPolicy`]: an operator's settings of approvals and of
//!   effect classes.
//! - [`RequestedPermissions`]: the permissions that a package requests in the format of another host.
//! - [`Registry`]: an immutable snapshot of the packages; [`LiveRegistry`]: a registry that can be refreshed when its directories
//!   have changed.
//! - `discovery`: runs plugins with dynamic tools once, to list these tools ([`LiveRegistry::discover_dynamic_tools`]). It is
//!   the only part of this crate that runs guest code.
//! - [`Catalog`]: search over tools, by words and, with an [`EmbeddingModel`], by meaning. [`WordVectors`] is such a model.
//! - `watch`: refreshes a registry when its directories change.
//! - `health`: rates the outcome of calls, for the ranking.
//! - `install`: adds, removes and packs packages ([`Installation`], [`LiveRegistry::remove_package`], [`pack`]).
//! - [`store`]: the metadata database.

mod catalog;
mod discovery;
mod health;
mod install;
mod live;
mod manifest;
mod package;
mod policy;
mod project;
mod registry;
mod requested;
mod scan;
pub mod store;
#[cfg(test)]
mod tests;
mod text_file;
mod vectors;
mod watch;

pub use catalog::{
    Catalog, CatalogUnion, Cutoff, Document, Embedding, EmbeddingModel, HITS_DEFAULT, HealthSignal, Hit, IndexedTool,
    InnerTool, Query, RankingSignals, TermExtractor, Terms,
};
pub use discovery::{DiscoveryOutcome, DiscoveryTargets, DynamicDiscovery, TOOLS_NOT_DISCOVERED};
pub use health::{FailingTool, health_check};
pub use install::{
    AddError, AddedPackage, Download, FileDigest, FileUrl, Installation, NameConflict, PackageQuery, PackageSource,
    RemoteFile, RemovedPackage, pack,
};
pub use live::{LiveRegistry, RefreshOutcome};
pub use manifest::{
    EntitySettings, EnvironmentNeed, Hints, LimitSettings, MANIFEST_SECTION, Manifest, RankingHints, RebindSetting,
    StateSetting, Tier, ToolSettings,
};
pub use package::{Package, PackageStatus};
pub use policy::{ApprovalSettings, EffectSetting, OperatorPolicy};
pub use project::{
    IndexSettings, InterceptorSettings, LongRunningTools, Project, ProjectLimits, ProposedGrants, RunSettings,
    SandboxSettings,
};
pub use registry::Registry;
pub use requested::RequestedPermissions;
pub use scan::{MissingPath, inspect_package, lint_package};
pub use vectors::{VectorDirectory, VectorFiles, WordVectors};
pub use watch::{WatchEvents, WatchGuard, WatchOptions};
