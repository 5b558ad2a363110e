//! Reading one package, or reusing its cached state if its files are unchanged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::time::Instant;

use super::inspect::{inspect_component, inspect_package};
use super::listing::ComponentFile;
use super::record::{content_hash, indexed_tools, package_record, restore};
use super::refusal::{refusal_record, stored_refusal};
use super::stamp::{may_be_incomplete, stamp};
use super::{Scan, or_default_with_warning};
use crate::catalog::{IndexedTool, TermExtractor};
use crate::manifest::Manifest;
use crate::package::{Package, PackageStatus, name_of};
use crate::store::{PackageRecord, Store};
use toolwit_core::{Error, ErrorKind};
use toolwit_sandbox::{Inspection, PackageContext, Plugin, Runtime};

/// The state of a package when its files were last read.
pub(crate) struct ScannedFile {
    pub(crate) package: Package,
    /// The stamp of the package's files. `None` if the next scan must read the files again.
    pub(crate) stamp: Option<String>,
    /// The hash of the package's content.
    pub(crate) content_hash: blake3::Hash,
    /// The package's tools, for the search index.
    pub(crate) tools: Arc<[IndexedTool]>,
    /// The last discovery of the package's dynamic tools, if the discovery failed.
    pub(crate) failed_discovery: Option<FailedDiscovery>,
}

/// A discovery of dynamic tools that failed.
#[derive(Clone)]
pub(crate) struct FailedDiscovery {
    pub(crate) plugin: Arc<Plugin>,
    /// The time of the failure.
    pub(crate) at: Instant,
}

impl ScannedFile {
    /// Returns whether both packages have the same content. Their stamps may differ.
    pub(super) fn has_same_content(&self, other: &Self) -> bool {
        self.content_hash == other.content_hash
    }
}

/// The cached state of a package before its files are read. The first scan of the process takes it from the store: it is
/// `Record` or `NoRecord`. Later scans take it from the last scan: it is `Scanned` or `NotScanned`.
pub(super) enum CachedState {
    /// The record in the store.
    Record(Box<PackageRecord>),
    /// Not cached: the store has no record of the package.
    NoRecord,
    /// The state after the last scan.
    Scanned(Arc<ScannedFile>),
    /// Not cached: the last scan did not find the component file, or found it while it may have been incomplete.
    NotScanned,
}

/// The result of reading a package.
pub(super) struct ReadOutcome {
    pub(super) path: PathBuf,
    /// The new state of the package. `None` while the component is a new file that may be incomplete.
    pub(super) file: Option<Arc<ScannedFile>>,
    /// The record to write to the store. `None` if the store already has an equal record or the package cannot be used.
    pub(super) new_record: Option<PackageRecord>,
    /// Whether another process may still be writing a file of the package, so that the package must be read again.
    pub(super) is_unsettled: bool,
}

impl ReadOutcome {
    fn unchanged(path: PathBuf, file: Arc<ScannedFile>) -> Self {
        Self {
            path,
            file: Some(file),
            new_record: None,
            is_unsettled: false,
        }
    }
}

/// Reads a package, or reuses its cached state if its files are unchanged. Blocks.
pub(super) fn read_package(
    scan: &Scan,
    component_file: ComponentFile,
    cached: CachedState,
    terms: &mut TermExtractor,
) -> ReadOutcome {
    let ComponentFile {
        path,
        refusal,
        sidecars,
    } = component_file;
    let name = match refusal.map_or_else(|| name_of(&path), Err) {
        Ok(name) => name,
        Err(error) => return broken_outcome(path, error, None, cached),
    };
    let stamp = stamp(&path, sidecars);
    if let Some(file) = unchanged_file(scan, &name, &path, stamp.as_ref(), &cached) {
        return ReadOutcome::unchanged(path, file);
    }
    match inspect_package(&name, &path, scan.runtime.engine_limits().component_bytes_max) {
        Ok((inspection, manifest)) => {
            let inspection = with_stored_tools(&*scan.store, &name, inspection);
            let mut record = package_record(&name, &path, &inspection, manifest.as_ref(), terms);
            record.stamp = stamp.clone().unwrap_or_default();
            let content_hash = content_hash(&record);
            record.content_hash = content_hash.to_string();
            let is_unsettled = stamp.is_none();
            let (package, failed_discovery) = match &cached {
                // The content is unchanged. The loaded plugin is reused, with its compiled code and its sessions.
                CachedState::Scanned(file) if file.content_hash == content_hash => {
                    (file.package.clone(), file.failed_discovery.clone())
                }
                _ => (
                    new_package(&scan.runtime, name, path.clone(), inspection, manifest),
                    None,
                ),
            };
            let error = package.broken_reason().cloned().or_else(|| package.discovery_error());
            record.reason = error.map(|error| error.message.clone());
            let is_stored = match &cached {
                CachedState::Record(stored) => **stored == record,
                CachedState::Scanned(file) => file.content_hash == content_hash && file.stamp == stamp,
                CachedState::NoRecord | CachedState::NotScanned => false,
            };
            let file = ScannedFile {
                tools: indexed_tools(&record, package.manifest.as_deref(), scan.embedding_model.as_ref()),
                package,
                stamp,
                content_hash,
                failed_discovery,
            };
            ReadOutcome {
                path,
                file: Some(Arc::new(file)),
                new_record: (!is_stored).then_some(record),
                is_unsettled,
            }
        }
        Err(error) => broken_outcome(path, error, stamp, cached),
    }
}

/// Returns the cached state of a package if its files have the cached stamp. `None` if the files must be read.
fn unchanged_file(
    scan: &Scan,
    name: &str,
    path: &Path,
    stamp: Option<&String>,
    cached: &CachedState,
) -> Option<Arc<ScannedFile>> {
    let stamp = stamp?;
    match cached {
        CachedState::Scanned(file) if file.stamp.as_ref() == Some(stamp) => Some(file.clone()),
        CachedState::Record(record) if record.stamp == *stamp => {
            let restored = restore(&scan.runtime, name, path, record);
            let (package, content_hash) = restored.or_else(|| restore_broken(&scan.runtime, name, path, record))?;
            Some(Arc::new(ScannedFile {
                tools: indexed_tools(record, package.manifest.as_deref(), scan.embedding_model.as_ref()),
                package,
                stamp: Some(stamp.clone()),
                content_hash,
                failed_discovery: None,
            }))
        }
        _ => None,
    }
}

/// Restores a package that could not be used when it was read, without validating its component again. `None` if the package must
/// be read again.
fn restore_broken(
    runtime: &Arc<Runtime>,
    name: &str,
    path: &Path,
    record: &PackageRecord,
) -> Option<(Package, blake3::Hash)> {
    let content_hash = content_hash(record);
    if content_hash.to_string() != record.content_hash {
        return None;
    }
    if let Some(refusal) = stored_refusal(record) {
        return Some((Package::broken(path, refusal), content_hash));
    }
    // The component is valid. Whether this runtime can load it is decided again, because its limits may have changed.
    let inspection = Inspection::from_cache_text(&record.inspection, name)?;
    if inspection.dynamic_tools_state().is_undiscovered() {
        // The store may now have its dynamic tools.
        return None;
    }
    let manifest = match &record.manifest {
        Some(text) => Some(serde_json::from_str(text).ok()?),
        None => None,
    };
    let package = new_package(runtime, name.to_owned(), path.to_owned(), inspection, manifest);
    Some((package, content_hash))
}

/// Returns the outcome for a package that cannot be used. If its component was written so recently that it may be
/// incomplete, the outcome has the state of the last scan in this process, or no state for a new file.
fn broken_outcome(path: PathBuf, error: Error, stamp: Option<String>, cached: CachedState) -> ReadOutcome {
    let is_unsettled = may_be_incomplete(&path);
    let new_record = match (&stamp, name_of(&path)) {
        (Some(stamp), Ok(name)) if !is_unsettled => refusal_record(&name, &path, &error, stamp),
        _ => None,
    };
    let is_stored = match (&cached, &new_record) {
        (CachedState::Record(stored), Some(record)) => **stored == *record,
        (CachedState::Scanned(file), Some(_)) => file.package.broken_reason().is_some() && file.stamp == stamp,
        _ => false,
    };
    let file = match cached {
        CachedState::Scanned(file) if is_unsettled => Some(file),
        CachedState::NotScanned if is_unsettled => None,
        _ => {
            let content_hash = match &new_record {
                Some(record) => content_hash(record),
                None => blake3::hash(format!("{} {} {}", error.kind, error.phase, error.message).as_bytes()),
            };
            // A file that could not be read may become readable without a change of its stamp: read it in each scan.
            let stamp = stamp.filter(|_| error.kind != ErrorKind::Io);
            Some(Arc::new(ScannedFile {
                package: Package::broken(&path, error),
                stamp,
                content_hash,
                tools: Arc::from([]),
                failed_discovery: None,
            }))
        }
    };
    ReadOutcome {
        path,
        file,
        new_record: new_record.filter(|_| !is_stored),
        is_unsettled,
    }
}

/// Adds the dynamic tools that the store has for this plugin and digest, if the dynamic tools in the inspection are not
/// discovered yet.
fn with_stored_tools(store: &dyn Store, plugin: &str, inspection: Inspection) -> Inspection {
    if !inspection.dynamic_tools_state().is_undiscovered() {
        return inspection;
    }
    match or_default_with_warning(store.dynamic_tools(plugin, &inspection.digest)) {
        Some(tools) => inspection.with_discovered_tools(&tools, plugin),
        None => inspection,
    }
}

/// Inspects a downloaded component that will be written to `path`, and returns it as a package. Blocks.
pub(crate) fn downloaded_package(runtime: &Arc<Runtime>, name: &str, path: PathBuf, component: &[u8]) -> Package {
    let context = PackageContext {
        name,
        adjacent_wit: None,
    };
    match inspect_component(component, context, None) {
        Ok((inspection, manifest)) => new_package(runtime, name.to_owned(), path, inspection, manifest),
        Err(error) => Package::broken(&path, error),
    }
}

/// Creates the package of an inspected component. The package is broken if the plugin cannot be loaded.
fn new_package(
    runtime: &Arc<Runtime>,
    name: String,
    path: PathBuf,
    inspection: Inspection,
    manifest: Option<Manifest>,
) -> Package {
    let annotations = manifest.as_ref().map(Manifest::annotations).unwrap_or_default();
    let manifest = manifest.map(Arc::new);
    match Plugin::from_inspection(runtime, &name, path.clone(), inspection, &annotations) {
        Ok(plugin) => Package {
            name,
            path,
            manifest,
            status: PackageStatus::Ready(plugin),
            discovery_failure: None,
        },
        Err(error) => Package {
            manifest,
            ..Package::broken(&path, error)
        },
    }
}
