//! Detecting unchanged files by their metadata, without reading them.

use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::listing::{SIDECAR_EXTENSIONS, Sidecars};
use toolwit_sandbox::INSPECTION_CACHE_VERSION;

/// A file that was modified less than this time ago may change again without a new timestamp: file systems have coarse
/// clocks.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Returns the stamp of a package: the modification times, sizes and inodes of its component, manifest and WIT file,
/// and the version of the inspection format. `None` while one of the files may still be changing, or if a file has no
/// usable modification time.
pub(super) fn stamp(component: &Path, sidecars: Sidecars) -> Option<String> {
    let mut stamp = format!("{INSPECTION_CACHE_VERSION}");
    let [manifest, wit] = SIDECAR_EXTENSIONS.map(|extension| component.with_extension(extension));
    let files = [
        (component, true),
        (manifest.as_path(), sidecars.has_manifest),
        (wit.as_path(), sidecars.has_wit),
    ];
    for (path, exists) in files {
        let Some(metadata) = exists.then(|| std::fs::metadata(path).ok()).flatten() else {
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

/// Returns whether a component was written so recently that it may be incomplete.
pub(super) fn may_be_incomplete(component: &Path) -> bool {
    let modified = std::fs::metadata(component).and_then(|metadata| metadata.modified());
    modified.is_ok_and(is_recent)
}

fn is_recent(modified: SystemTime) -> bool {
    SystemTime::now()
        .duration_since(modified)
        .is_ok_and(|age| age < SETTLED_AFTER)
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_metadata: &Metadata) -> u64 {
    0
}
