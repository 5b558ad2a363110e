//! One package: from its files, or from what is remembered of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::document::quality_percent;
use super::listing::Listed;
use super::manifest::{Manifest, Tier};
use super::package::{Package, PackageStatus, name_of};
use crate::error::Error;
use crate::plugin::{Inspection, KEPT_VERSION, Origin, Plugin, Runtime, read_component, read_wit};
use crate::store::{PackageRecord, ToolRecord};

/// A file that changed this shortly before it was looked at may change again without a sign of it: clocks of file systems
/// tick in steps.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// A package, and what is to be remembered of it if that changed.
pub(super) struct Reading {
    pub(super) package: Package,
    pub(super) changed: Option<PackageRecord>,
}

/// Reads a package, or takes it from what is known when its files are the same. Blocks.
pub(super) fn read(runtime: &Arc<Runtime>, file: Listed, known: Option<PackageRecord>) -> Reading {
    let Listed { path, refused } = file;
    let name = match refused.map_or_else(|| name_of(&path), Err) {
        Ok(name) => name,
        Err(error) => {
            return Reading {
                package: Package::broken(&path, error),
                changed: None,
            };
        }
    };
    let stamp = stamp(&path);
    if let (Some(known), Some(stamp)) = (&known, &stamp)
        && known.stamp == *stamp
        && let Some(package) = restore(runtime, &name, &path, known)
    {
        return Reading { package, changed: None };
    }
    let read = inspect(runtime, &name, &path);
    // What is not settled, or broken for a reason that may pass, is read again next time.
    let stamp = stamp.unwrap_or_default();
    match read {
        Ok((inspection, manifest)) => {
            let record = record(&name, &path, stamp, &inspection, manifest.as_ref());
            let package = package(runtime, name, path, inspection, manifest);
            let changed = (known.as_ref() != Some(&record)).then_some(record);
            Reading { package, changed }
        }
        Err(error) => Reading {
            package: Package::broken(&path, error),
            changed: None,
        },
    }
}

/// Describes the files of a package as the file system sees them. `None` while they may still be changing.
fn stamp(path: &Path) -> Option<String> {
    let mut stamp = format!("{KEPT_VERSION}");
    for path in [path.to_owned(), path.with_extension("toml"), path.with_extension("wit")] {
        let Ok(metadata) = std::fs::metadata(&path) else {
            stamp.push_str(" -");
            continue;
        };
        let modified = metadata.modified().ok()?;
        if SystemTime::now()
            .duration_since(modified)
            .is_ok_and(|age| age < SETTLED_AFTER)
        {
            return None;
        }
        let nanoseconds = modified.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        stamp.push_str(&format!(" {nanoseconds}.{}.{}", metadata.len(), inode(&metadata)));
    }
    Some(stamp)
}

#[cfg(unix)]
fn inode(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_metadata: &std::fs::Metadata) -> u64 {
    0
}

fn restore(runtime: &Arc<Runtime>, name: &str, path: &Path, known: &PackageRecord) -> Option<Package> {
    let inspection = Inspection::restore(&known.inspection, name)?;
    let manifest = match &known.manifest {
        Some(text) => Some(serde_json::from_str(text).ok()?),
        None => None,
    };
    Some(package(runtime, name.to_owned(), path.to_owned(), inspection, manifest))
}

fn inspect(runtime: &Arc<Runtime>, name: &str, path: &Path) -> Result<(Inspection, Option<Manifest>), Error> {
    let bytes = read_component(path, runtime.engine_limits().component_bytes_max)?;
    let manifest = match Manifest::beside(&path.with_extension("toml"))? {
        Some(manifest) => Some(manifest),
        None => Manifest::embedded(&bytes)?,
    };
    let beside = read_wit(&path.with_extension("wit"));
    let origin = Origin {
        name,
        wit_beside: beside.as_deref(),
    };
    let annotations = manifest.as_ref().map(Manifest::annotations).unwrap_or_default();
    Ok((Inspection::annotated(&bytes, origin, &annotations)?, manifest))
}

fn package(
    runtime: &Arc<Runtime>,
    name: String,
    path: PathBuf,
    inspection: Inspection,
    manifest: Option<Manifest>,
) -> Package {
    let requested = manifest
        .as_ref()
        .map(|manifest| manifest.annotations().limits)
        .unwrap_or_default();
    match Plugin::from_inspected(runtime, &name, path.clone(), inspection, requested) {
        Ok(plugin) => Package {
            name,
            path,
            manifest,
            status: PackageStatus::Ready(plugin),
        },
        Err(error) => Package {
            manifest,
            ..Package::broken(&path, error)
        },
    }
}

fn record(
    name: &str,
    path: &Path,
    stamp: String,
    inspection: &Inspection,
    manifest: Option<&Manifest>,
) -> PackageRecord {
    let tier = manifest.map(Manifest::tier).unwrap_or_default();
    let tools = inspection.tools.iter().map(|tool| ToolRecord {
        id: tool.id.to_string(),
        export: tool
            .id
            .as_str()
            .strip_prefix(name)
            .unwrap_or(tool.id.as_str())
            .trim_start_matches('/')
            .to_owned(),
        description: tool.description.clone(),
        quality_percent: quality_percent(tool, tier),
    });
    PackageRecord {
        path: path.to_string_lossy().into_owned(),
        stamp,
        name: name.to_owned(),
        digest: inspection.digest.clone(),
        version: manifest.and_then(|manifest| manifest.version.clone()),
        category: manifest.and_then(|manifest| manifest.category.clone()),
        tier: match tier {
            Tier::Minimal => "minimal",
            Tier::Rich => "rich",
        }
        .to_owned(),
        inspection: inspection.keep(),
        manifest: manifest.and_then(|manifest| serde_json::to_string(manifest).ok()),
        reason: None,
        tools: tools.collect(),
    }
}
