//! Measuring the disk usage of a directory tree.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use cap_primitives::fs::{AccessModes, AccessType, FollowSymlinks, ReadDir, access, open_dir, read_base_dir, read_dir};

use super::quota::ENTRY_BYTES;
use toolwit_core::limits::DIRECTORY_ENTRIES_MAX;

/// The maximum length of a path from its base, in bytes. A base is an open directory from which paths start. A directory with a
/// longer path becomes a new base. The length is below the maximum of the operating system, so that deep trees can be measured.
const PATH_BYTES_MAX: usize = 2_000;

/// The maximum number of bases that are open at a time. Only a deep tree that branches at every depth needs several.
const BASES_MAX: usize = 64;

/// Measures a directory tree in bytes: the length of its files, including the holes of sparse files, and [`ENTRY_BYTES`] for
/// each name. Links are counted but not followed. Entries that are removed before they are read are not counted.
///
/// Returns `u64::MAX` for a tree that is too large or not readable:
/// - It has more than [`DIRECTORY_ENTRIES_MAX`] names, or needs more than [`BASES_MAX`] bases.
/// - The host may not read the root of the tree.
/// - The host may not read a directory of the tree, but can open files in it.
///
/// A directory counts as empty if the host can neither read its names nor open files in it, because guests cannot open its files.
///
/// # Errors
/// If a directory of the tree cannot be read for a reason other than its removal or missing permissions.
pub(super) fn measure_tree(directory: &File) -> io::Result<u64> {
    let mut walk = TreeWalk {
        bases: vec![directory.try_clone()?],
        pending: vec![(0, PathBuf::new())],
    };
    let (mut bytes, mut entry_count) = (0_u64, 0_u64);
    while let Some((base, path)) = walk.pending.pop() {
        let (base, path, entries) = match walk.open(base, path.clone()) {
            Ok(opened) => opened,
            Err(error) => {
                bytes = bytes.saturating_add(unlistable_bytes(error, || walk.may_contain_open_files(base, &path))?);
                continue;
            }
        };
        if base >= BASES_MAX {
            return Ok(u64::MAX);
        }
        for entry in entries {
            // A directory that is removed meanwhile causes no error here: its list of entries ends.
            let entry = entry?;
            let (name, Ok(metadata)) = (entry.file_name(), entry.metadata()) else {
                continue;
            };
            if metadata.is_dir() {
                walk.pending.push((base, path.join(name)));
            }
            entry_count += 1;
            bytes = bytes.saturating_add(ENTRY_BYTES);
            if metadata.is_file() {
                bytes = bytes.saturating_add(metadata.len());
            }
            if entry_count > DIRECTORY_ENTRIES_MAX {
                return Ok(u64::MAX);
            }
        }
    }
    Ok(bytes)
}

/// The state of measuring a tree.
struct TreeWalk {
    /// The bases: open directories, each inside the previous one.
    bases: Vec<File>,
    /// Directories to measure: the index of a base, and the path from this base. The indices never decrease.
    pending: Vec<(usize, PathBuf)>,
}

impl TreeWalk {
    /// Opens a pending directory. Returns the index of its base, which may be new, its path from the base, and its entries.
    fn open(&mut self, base: usize, path: PathBuf) -> io::Result<(usize, PathBuf, ReadDir)> {
        self.bases.truncate(base + 1);
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            let entries = list(&self.bases[base], &path)?;
            return Ok((base, path, entries));
        }
        let new_base = open_dir(&self.bases[base], &path)?;
        // The old base is not needed any more if no pending directory starts from it.
        if self
            .pending
            .last()
            .is_none_or(|(pending_base, _)| *pending_base != base)
        {
            self.bases.pop();
        }
        let entries = list(&new_base, Path::new(""))?;
        self.bases.push(new_base);
        Ok((self.bases.len() - 1, PathBuf::new(), entries))
    }

    /// Returns whether a guest may have files open in or below a directory that the host may not list. Returns `true` for the
    /// root of the tree, because its permissions may have been different when a guest opened files.
    fn may_contain_open_files(&self, base: usize, path: &Path) -> bool {
        let Some(base) = self.bases.get(base).filter(|_| !path.as_os_str().is_empty()) else {
            return true;
        };
        let search_permission = AccessType::Access(AccessModes {
            readable: false,
            writable: false,
            executable: true,
        });
        let access_result = access(base, path, search_permission, FollowSymlinks::No);
        access_result.map_or_else(|error| error.kind() != io::ErrorKind::PermissionDenied, |()| true)
    }
}

fn list(base: &File, path: &Path) -> io::Result<ReadDir> {
    if path.as_os_str().is_empty() {
        read_base_dir(base)
    } else {
        read_dir(base, path)
    }
}

/// Returns the bytes to count for the content of a directory that cannot be listed because of `error`. A directory that was
/// removed or replaced since it was found counts as empty. A directory that the host may not read counts as `u64::MAX` bytes if
/// it may contain open files, otherwise as empty.
///
/// # Errors
/// Any other error of listing the directory.
fn unlistable_bytes(error: io::Error, may_contain_open_files: impl FnOnce() -> bool) -> io::Result<u64> {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match error.kind() {
        NotFound | NotADirectory => Ok(0),
        PermissionDenied if may_contain_open_files() => Ok(u64::MAX),
        PermissionDenied => Ok(0),
        _ => Err(error),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::ErrorKind::{NotADirectory, NotFound, Other, PermissionDenied};

    use super::*;

    #[test]
    fn only_a_directory_that_was_removed_or_is_out_of_reach_counts_as_empty() {
        let bytes = |kind: io::ErrorKind, may_contain| unlistable_bytes(kind.into(), || may_contain);
        for may_contain_open_files in [false, true] {
            assert_eq!(bytes(NotFound, may_contain_open_files).unwrap(), 0);
            assert_eq!(bytes(NotADirectory, may_contain_open_files).unwrap(), 0);
            assert!(bytes(Other, may_contain_open_files).is_err());
        }
        assert_eq!(bytes(PermissionDenied, false).unwrap(), 0);
        assert_eq!(bytes(PermissionDenied, true).unwrap(), u64::MAX);
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_the_host_may_enter_but_not_read_counts_as_full() {
        use std::fs;
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let closed = directory.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("file"), [0; 1_000]).unwrap();
        let (outer, inner) = (File::open(directory.path()).unwrap(), File::open(&closed).unwrap());
        let measure_with_mode = |mode| {
            fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
            let is_readable = fs::read_dir(&closed).is_ok();
            let bytes = [&outer, &inner].map(|directory| measure_tree(directory).unwrap());
            fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
            (is_readable, bytes)
        };
        let closed_bytes = ENTRY_BYTES + 1_000;
        let readable_result = (true, [ENTRY_BYTES + closed_bytes, closed_bytes]);
        assert_eq!(measure_with_mode(0o700), readable_result);
        for (mode, unreadable_bytes) in [
            (0o300, [u64::MAX, u64::MAX]),
            (0o100, [u64::MAX, u64::MAX]),
            // No guest can open a file in `closed` now. If `closed` itself is granted, a guest may have opened files before.
            (0o000, [ENTRY_BYTES, u64::MAX]),
        ] {
            let measured = measure_with_mode(mode);
            // A superuser may read every directory.
            assert!(
                measured == (false, unreadable_bytes) || measured == readable_result,
                "{mode:o}: {measured:?}"
            );
        }
    }
}
