//! One package: from its files, or from what is remembered of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use super::catalog::{IndexedTool, TermExtractor, Terms};
use super::document::{document, quality_percent};
use super::listing::{BESIDE, Beside, Listed};
use super::manifest::{Manifest, Tier};
use super::package::{Package, PackageStatus, name_of};
use super::scan::warned;
use crate::store::{PackageRecord, Store, ToolRecord};
use toolwit_core::{Error, ErrorKind};
use toolwit_sandbox::{
    CachedInspection, INSPECTION_CACHE_VERSION, Inspection, Origin, Plugin, Runtime, read_component, read_wit,
};
use toolwit_sections::custom_section;

/// A file that changed this shortly before it was looked at may change again without a sign of it: clocks of file systems
/// tick in steps.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// The custom sections in which the wider ecosystem keeps what a component is.
pub(super) const VERSION_SECTION: &str = "version";
pub(super) const DESCRIPTION_SECTION: &str = "description";

/// The longest text of such a section that is believed, in bytes.
const STANDARD_TEXT_BYTES_MAX: usize = 1_024;

/// What was read of a package's files.
pub(super) struct Seen {
    pub(super) package: Package,
    /// What the file system said of the files then; `None` when they must be read again in any case.
    pub(super) stamp: Option<String>,
    /// A hash of all that was read.
    pub(super) content: blake3::Hash,
    /// Its tools, for the index.
    pub(super) tools: Arc<[IndexedTool]>,
    /// The plugin that told no tools that can be used when it was asked.
    pub(super) silent: Option<Silent>,
}

/// A plugin that told no tools that can be used, and when.
#[derive(Clone)]
pub(super) struct Silent {
    pub(super) plugin: Arc<Plugin>,
    pub(super) since: Instant,
}

impl Seen {
    /// Whether both are of the same content, however often it was written.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

/// What is known of a file before it is read.
pub(super) enum Earlier {
    /// Nothing: everything is read for the first time.
    Nothing,
    /// What the store remembers.
    Record(Box<PackageRecord>),
    /// What this process read before.
    Seen(Arc<Seen>),
    /// It was not there before, while others were.
    Unseen,
}

/// A look at a package.
pub(super) struct Reading {
    pub(super) path: PathBuf,
    /// What there is; nothing while a new file is not whole yet.
    pub(super) seen: Option<Arc<Seen>>,
    /// What is to be remembered, if that changed.
    pub(super) changed: Option<PackageRecord>,
    /// Whether the file is being written, so that it will have to be read again.
    pub(super) is_unsettled: bool,
}

/// Reads a package, or takes it from what is known when its files are the same. Blocks.
pub(super) fn read(
    runtime: &Arc<Runtime>,
    store: &dyn Store,
    file: Listed,
    known: Earlier,
    terms: &mut TermExtractor,
) -> Reading {
    let Listed { path, refused, beside } = file;
    let name = match refused.map_or_else(|| name_of(&path), Err) {
        Ok(name) => name,
        Err(error) => return broken(path, error, None, known),
    };
    let stamp = stamp(&path, beside);
    if stamp.is_some() {
        match &known {
            Earlier::Seen(seen) if seen.stamp == stamp => return Reading::unchanged(path, seen.clone()),
            Earlier::Record(record) if Some(&record.stamp) == stamp.as_ref() => {
                if let Some((package, content)) = restore(runtime, &name, &path, record) {
                    let tools = indexed(record);
                    let seen = Seen {
                        package,
                        stamp,
                        content,
                        tools,
                        silent: None,
                    };
                    return Reading::unchanged(path, Arc::new(seen));
                }
            }
            _ => {}
        }
    }
    let bytes_max = runtime.engine_limits().component_bytes_max;
    match inspect_package(&name, &path, bytes_max) {
        Ok((inspection, manifest)) => {
            let inspection = with_kept_tools(store, &name, inspection);
            let mut record = record(&name, &path, &inspection, manifest.as_ref(), terms);
            record.stamp = stamp.clone().unwrap_or_default();
            let content = content_of(&record);
            record.content = content.to_string();
            let is_unsettled = stamp.is_none();
            let (package, silent) = match &known {
                // The plugin goes on, with its machine code and its sessions.
                Earlier::Seen(seen) if seen.content == content => (seen.package.clone(), seen.silent.clone()),
                _ => (package(runtime, name, path.clone(), inspection, manifest), None),
            };
            let reason = package.reason().cloned().or_else(|| package.discovery_error());
            record.reason = reason.map(|reason| reason.message.clone());
            let is_known = matches!(&known, Earlier::Record(known) if **known == record)
                || matches!(&known, Earlier::Seen(seen) if seen.content == content && seen.stamp == stamp);
            let tools = indexed(&record);
            Reading {
                path,
                seen: Some(Arc::new(Seen {
                    package,
                    stamp,
                    content,
                    tools,
                    silent,
                })),
                changed: (!is_known).then_some(record),
                is_unsettled,
            }
        }
        Err(error) => broken(path, error, stamp, known),
    }
}

impl Reading {
    fn unchanged(path: PathBuf, seen: Arc<Seen>) -> Self {
        Self {
            path,
            seen: Some(seen),
            changed: None,
            is_unsettled: false,
        }
    }
}

/// What to believe of a file that cannot be used: while it is being written, what was known of it before.
fn broken(path: PathBuf, error: Error, stamp: Option<String>, known: Earlier) -> Reading {
    let is_unsettled = is_fresh(&path);
    let earlier = match known {
        Earlier::Seen(seen) if is_unsettled => Some(seen),
        Earlier::Unseen if is_unsettled => None,
        _ => {
            let content = blake3::hash(format!("{} {} {}", error.kind, error.phase, error.message).as_bytes());
            // A file that could not be read may be readable next time, without another sign of it.
            let stamp = stamp.filter(|_| error.kind != ErrorKind::Io);
            let package = Package::broken(&path, error);
            Some(Arc::new(Seen {
                package,
                stamp,
                content,
                tools: Arc::from([]),
                silent: None,
            }))
        }
    };
    Reading {
        path,
        seen: earlier,
        changed: None,
        is_unsettled,
    }
}

/// Whether a component was written so recently that it may not be whole.
fn is_fresh(path: &Path) -> bool {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(is_recent)
}

fn is_recent(modified: SystemTime) -> bool {
    SystemTime::now()
        .duration_since(modified)
        .is_ok_and(|age| age < SETTLED_AFTER)
}

/// A file as the store names it: whatever the directory is that the host runs in.
pub(super) fn stored_path(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.to_string_lossy().into_owned()
}

/// Hashes what a package is, without where and when it was read.
pub(super) fn content_of(record: &PackageRecord) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for text in [
        &record.name,
        &record.inspection,
        record.manifest.as_ref().unwrap_or(&String::new()),
    ] {
        hasher
            .update(&(text.len() as u64).to_le_bytes())
            .update(text.as_bytes());
    }
    hasher.finalize()
}

/// Describes the files of a package as the file system sees them. `None` while they may still be changing.
fn stamp(path: &Path, beside: Beside) -> Option<String> {
    let mut stamp = format!("{INSPECTION_CACHE_VERSION}");
    let [manifest, wit] = BESIDE.map(|extension| path.with_extension(extension));
    let near = [(&manifest, beside.manifest), (&wit, beside.wit)];
    for (path, is_there) in std::iter::once((&path.to_owned(), true)).chain(near) {
        let Some(metadata) = is_there.then(|| std::fs::metadata(path).ok()).flatten() else {
            stamp.push_str(" -");
            continue;
        };
        let modified = metadata.modified().ok()?;
        if is_recent(modified) {
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

/// Takes a package from what is remembered, if that is whole. Its text is read when somebody asks for the package.
fn restore(runtime: &Arc<Runtime>, name: &str, path: &Path, known: &PackageRecord) -> Option<(Package, blake3::Hash)> {
    let content = content_of(known);
    // A package that could not be used may be usable under today's limits, and one that was not asked may be asked now.
    if known.reason.is_some() || content.to_string() != known.content {
        return None;
    }
    let manifest: Option<Manifest> = match &known.manifest {
        Some(text) => Some(serde_json::from_str(text).ok()?),
        None => None,
    };
    let annotations = manifest.as_ref().map(Manifest::annotations).unwrap_or_default();
    let kept = CachedInspection::new(known.digest.as_str(), known.tools.len(), known.inspection.as_str());
    let plugin = Plugin::from_cached(runtime, name, path.to_owned(), kept, &annotations);
    let package = Package {
        name: name.to_owned(),
        path: path.to_owned(),
        manifest: manifest.map(Arc::new),
        status: PackageStatus::Ready(plugin),
        discovery_failure: None,
    };
    Some((package, content))
}

/// The tools of a record, for the index.
pub(super) fn indexed(record: &PackageRecord) -> Arc<[IndexedTool]> {
    let tools = record.tools.iter().map(|tool| {
        let mut indexed = IndexedTool::new(tool.id.as_str(), tool.name.as_str(), Terms::kept(tool.terms.clone()));
        indexed.standing.quality = f32::from(tool.quality_percent) / 100.0;
        indexed
    });
    tools.collect()
}

/// Reads what a component file and its manifest tell, under a plugin's name. Blocks; nothing is compiled or run.
///
/// # Errors
/// Those of [`Inspection::from_bytes_with`], and of a file or a manifest that cannot be read.
pub fn inspect_package(name: &str, path: &Path, bytes_max: u64) -> Result<(Inspection, Option<Manifest>), Error> {
    let bytes = read_component(path, bytes_max)?;
    let manifest = match Manifest::beside(&path.with_extension("toml"))? {
        Some(manifest) => Some(manifest),
        None => Manifest::embedded(&bytes)?,
    };
    let manifest = with_standard_sections(manifest, &bytes);
    let beside = read_wit(&path.with_extension("wit"));
    let origin = Origin {
        name,
        adjacent_wit: beside.as_deref(),
    };
    let annotations = manifest.as_ref().map(Manifest::annotations).unwrap_or_default();
    Ok((Inspection::from_bytes_with(&bytes, origin, &annotations)?, manifest))
}

/// Completes a manifest with what the standard sections of a component say: its version and its description.
fn with_standard_sections(manifest: Option<Manifest>, component: &[u8]) -> Option<Manifest> {
    let text = |name: &str| {
        let text = std::str::from_utf8(custom_section(component, name)?).ok()?.trim();
        let is_usual = !text.is_empty() && text.len() <= STANDARD_TEXT_BYTES_MAX && !text.chars().any(char::is_control);
        is_usual.then(|| text.to_owned())
    };
    let (version, description) = (text(VERSION_SECTION), text(DESCRIPTION_SECTION));
    if manifest.is_none() && version.is_none() && description.is_none() {
        return None;
    }
    let mut manifest = manifest.unwrap_or_default();
    manifest.version = manifest.version.or(version);
    manifest.description = manifest.description.or(description);
    Some(manifest)
}

/// Adds the tools that a component told when it was asked before.
fn with_kept_tools(store: &dyn Store, plugin: &str, inspection: Inspection) -> Inspection {
    if !inspection.dynamic_tools().is_undiscovered() {
        return inspection;
    }
    match warned(store.dynamic_tools(plugin, &inspection.digest)) {
        Some(told) => inspection.with_discovered_tools(&told, plugin),
        None => inspection,
    }
}

fn package(
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

pub(super) fn record(
    name: &str,
    path: &Path,
    inspection: &Inspection,
    manifest: Option<&Manifest>,
    terms: &mut TermExtractor,
) -> PackageRecord {
    let tier = manifest.map(Manifest::tier).unwrap_or_default();
    let tools = inspection.tools.iter().map(|tool| ToolRecord {
        id: tool.id.to_string(),
        name: tool.name().to_owned(),
        export: tool
            .id
            .as_str()
            .strip_prefix(name)
            .unwrap_or(tool.id.as_str())
            .trim_start_matches('/')
            .to_owned(),
        description: tool.description.clone(),
        quality_percent: quality_percent(tool, tier),
        terms: terms.read(&document(tool, manifest)).text().to_owned(),
    });
    PackageRecord {
        path: stored_path(path),
        name: name.to_owned(),
        digest: inspection.digest.clone(),
        version: manifest.and_then(|manifest| manifest.version.clone()),
        category: manifest.and_then(|manifest| manifest.category.clone()),
        tier: match tier {
            Tier::Minimal => "minimal",
            Tier::Rich => "rich",
        }
        .to_owned(),
        inspection: inspection.to_cache_text(),
        manifest: manifest.and_then(|manifest| serde_json::to_string(manifest).ok()),
        tools: tools.collect(),
        ..PackageRecord::default()
    }
}
