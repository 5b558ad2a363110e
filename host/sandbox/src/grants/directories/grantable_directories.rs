//! The directories that can be granted.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::identity::{DirectoryIdentity, DirectoryInode};
use super::open_path::{ResolvedDirectory, open_path};
use crate::grants::{AccessMode, DirectoryRule};

/// File systems that expose processes, their environment and memory, and devices.
const KERNEL_FILE_SYSTEMS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The directories that some grant makes writable for a plugin. The plugin can replace every directory inside them, even
/// a directory that another grant names.
#[derive(Clone, Debug, Default)]
pub(crate) struct WritableRoots {
    current: HashSet<DirectoryInode>,
    /// The directories that were writable under a grant that was revoked, or under another grants file. A plugin may have
    /// left links in them.
    recorded: Arc<[DirectoryIdentity]>,
}

impl WritableRoots {
    /// Finds the directories that rules make writable. Skips those that cannot be opened. `recorded` has the directories
    /// that were writable earlier.
    pub(crate) fn of<'a>(
        rules: impl IntoIterator<Item = &'a DirectoryRule>,
        recorded: Arc<[DirectoryIdentity]>,
    ) -> Self {
        let writable = |rule: &&DirectoryRule| rule.access == AccessMode::ReadWrite;
        let mut rules: Vec<_> = rules.into_iter().filter(writable).collect();
        // Outer directories come first: `open_path` follows no links inside the roots that were found before.
        rules.sort_by_key(|rule| rule.host.components().count());
        let mut roots = Self {
            current: HashSet::new(),
            recorded,
        };
        for rule in rules {
            if let Ok(directory) = open_path(&rule.host, &roots) {
                roots.current.insert(directory.identity.inode());
            }
        }
        roots
    }

    /// Returns whether a grant makes the directory writable now.
    pub(super) fn contains(&self, directory: DirectoryIdentity) -> bool {
        self.current.contains(&directory.inode())
    }

    /// Returns whether a grant on record made the directory writable, so that a plugin may have left links in it.
    pub(super) fn has_recorded(&self, directory: DirectoryIdentity) -> bool {
        self.recorded
            .iter()
            .any(|recorded| directory.matches_recorded(*recorded))
    }
}

/// The directories that can be granted: all except the root of a file system, kernel file systems, and directories that
/// overlap the host's own files. The directories of plugins and of some configuration can be granted for reading only.
#[derive(Clone, Debug, Default)]
pub(crate) struct GrantableDirectories {
    /// Real paths of the host's own files and directories, which cannot be granted.
    pub(crate) protected_paths: Vec<PathBuf>,
    /// Real paths of files and directories from which the host loads plugins. They can be granted for reading only.
    pub(crate) plugin_paths: Vec<PathBuf>,
    /// Real paths of files that the host reads or starts, and that have no secrets. They can be granted for reading only.
    pub(crate) read_only_paths: Vec<PathBuf>,
    /// The directories that some grant makes writable.
    pub(crate) writable: WritableRoots,
}

impl GrantableDirectories {
    /// Opens the directory of a rule, after following links.
    ///
    /// # Errors
    /// If the directory does not exist, is not a directory, or cannot be granted with this access.
    pub(super) fn resolve(&self, rule: &DirectoryRule) -> io::Result<ResolvedDirectory> {
        let directory = open_path(&rule.host, &self.writable)?;
        let path = &directory.path;
        if path.parent().is_none() {
            return Err(io::Error::other("it is the root of the file system"));
        }
        if let Some(kernel_path) = KERNEL_FILE_SYSTEMS.iter().find(|kernel| path.starts_with(kernel)) {
            let why = format!("{kernel_path} exposes processes and devices, not files");
            return Err(io::Error::other(why));
        }
        let overlaps = |host_path: &&PathBuf| host_path.starts_with(path) || path.starts_with(host_path);
        if let Some(protected_path) = self.protected_paths.iter().find(overlaps) {
            let why = format!(
                "it is, contains or is inside {}, which belongs to the host",
                protected_path.display()
            );
            return Err(io::Error::other(why));
        }
        if rule.access == AccessMode::Read {
            return Ok(directory);
        }
        for (paths, use_of_host) in [
            (&self.plugin_paths, "from which the host loads plugins"),
            (&self.read_only_paths, "which the host uses"),
        ] {
            if let Some(host_path) = paths.iter().find(overlaps) {
                let host_path = host_path.display();
                let why = format!(
                    "it is, contains or is inside {host_path}, {use_of_host}; it can be granted for reading only"
                );
                return Err(io::Error::other(why));
            }
        }
        Ok(directory)
    }
}

/// Returns the real path of a file or directory, without links. The last components of the path need not exist; missing
/// components are returned unchanged.
pub(super) fn real_path(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for existing in path.ancestors() {
        if let (Ok(real), Ok(missing_part)) = (fs::canonicalize(existing), path.strip_prefix(existing)) {
            return if missing_part.as_os_str().is_empty() {
                real
            } else {
                real.join(missing_part)
            };
        }
    }
    path
}
