//! Merges discovered tools into the scanned files.

use std::path::Path;
use std::sync::Arc;

use tokio::time::Instant;

use super::run::DiscoveryResult;
use crate::catalog::{EmbeddingModel, TermExtractor};
use crate::package::{Package, PackageStatus};
use crate::scan::{FailedDiscovery, ScannedFile, ScannedFiles, content_hash, indexed_tools, package_record};
use crate::store::{DynamicToolsRecord, PackageRecord};
use toolwit_core::{Error, ErrorKind};
use toolwit_sandbox::Plugin;

/// The changes of a merge: the records to write to the store, and whether a new snapshot must be published.
pub(super) struct DiscoveryChanges {
    pub(super) packages: Vec<PackageRecord>,
    pub(super) dynamic_tools: Vec<DynamicToolsRecord>,
    /// Whether a scanned file changed. A failed discovery changes its file, but adds no records.
    pub(super) has_changed_files: bool,
}

/// Merges results into the scanned files. Ignores a result if its component has changed in the meantime.
pub(super) fn apply(
    files: &mut ScannedFiles,
    results: Vec<DiscoveryResult>,
    model: Option<&Arc<dyn EmbeddingModel>>,
) -> DiscoveryChanges {
    let mut extractor = TermExtractor::new();
    let mut changes = DiscoveryChanges {
        packages: Vec::new(),
        dynamic_tools: Vec::new(),
        has_changed_files: false,
    };
    for result in results {
        let DiscoveryResult {
            path,
            plugin,
            discovered,
        } = result;
        let Some(before) = files.get(&path).filter(|file| file.has_plugin(&plugin)) else {
            continue;
        };
        let after = match discovered {
            Ok(plugin) => {
                let tools = plugin.inspection().discovered_tools();
                changes.dynamic_tools.extend(tools.map(|tools| DynamicToolsRecord {
                    plugin: plugin.name().to_owned(),
                    digest: plugin.digest().to_owned(),
                    tools,
                }));
                let (after, record) = before.with_discovered(&path, plugin, &mut extractor, model);
                changes.packages.push(record);
                after
            }
            // The tools of an earlier discovery remain available.
            Err(_) if !plugin.dynamic_tools_state().is_undiscovered() => continue,
            Err(error) => before.with_failure(plugin, error),
        };
        files.insert(path, Arc::new(after));
        changes.has_changed_files = true;
    }
    changes
}

/// Returns whether an error means that no function of the component can run.
fn is_unusable(error: &Error) -> bool {
    matches!(
        error.kind,
        ErrorKind::MalformedComponent | ErrorKind::Unsupported | ErrorKind::UnknownImport
    )
}

impl ScannedFile {
    /// Returns whether the file still has this plugin: as the plugin of its usable package, or of its failed discovery.
    fn has_plugin(&self, plugin: &Arc<Plugin>) -> bool {
        let failed_plugin = self.failed_discovery.as_ref().map(|failed| &failed.plugin);
        [self.package.plugin(), failed_plugin]
            .into_iter()
            .flatten()
            .any(|current| Arc::ptr_eq(current, plugin))
    }

    /// Returns the state of the file after a successful discovery, and its record for the store. `plugin` has the discovered tools.
    fn with_discovered(
        &self,
        path: &Path,
        plugin: Arc<Plugin>,
        extractor: &mut TermExtractor,
        model: Option<&Arc<dyn EmbeddingModel>>,
    ) -> (Self, PackageRecord) {
        let manifest = self.package.manifest.as_deref();
        let mut record = package_record(&self.package.name, path, plugin.inspection(), manifest, extractor);
        record.stamp = self.stamp.clone().unwrap_or_default();
        let content_hash = content_hash(&record);
        record.content_hash = content_hash.to_string();
        let file = Self {
            package: Package {
                status: PackageStatus::Ready(plugin),
                discovery_failure: None,
                ..self.package.clone()
            },
            stamp: self.stamp.clone(),
            content_hash,
            tools: indexed_tools(&record, manifest, model),
            failed_discovery: None,
        };
        (file, record)
    }

    /// Returns the state of the file after the discovery of `plugin` failed. The tools in its WIT stay available, unless no function
    /// of the component can run.
    fn with_failure(&self, plugin: Arc<Plugin>, error: Error) -> Self {
        let package = self.package.clone();
        let package = if is_unusable(&error) {
            Package {
                status: PackageStatus::Broken(error),
                discovery_failure: None,
                ..package
            }
        } else {
            Package {
                status: PackageStatus::Ready(plugin.clone()),
                discovery_failure: Some(Arc::new(error)),
                ..package
            }
        };
        Self {
            package,
            stamp: self.stamp.clone(),
            content_hash: self.content_hash,
            tools: self.tools.clone(),
            failed_discovery: Some(FailedDiscovery {
                plugin,
                at: Instant::now(),
            }),
        }
    }
}
