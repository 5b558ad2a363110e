//! Measuring the disk usage of a directory tree.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use cap_primitives::fs::{ReadDir, open_dir, read_base_dir, read_dir};

use super::quota::ENTRY_BYTES;
use toolwit_core::limits::DIRECTORY_ENTRIES_MAX;

/// The maximum length of a path from its base, in bytes. A directory with a longer path is opened as a new base, from which the
/// paths below it start. The length is below the maximum of the operating system, so that a tree of any depth can be measured.
const PATH_BYTES_MAX: usize = 2_000;

/// The maximum number of bases that are open at a time. Only a deep tree that branches at every depth needs several.
const BASES_MAX: usize = 64;

/// Measures a directory tree: the length of its files, including the holes of sparse files, and [`ENTRY_BYTES`] for each
/// name. Links are counted but not followed. Entries that disappear meanwhile, and the content of directories that the host may
/// not read, are not counted. A tree with more than [`DIRECTORY_ENTRIES_MAX`] names or [`BASES_MAX`] bases counts as `u64::MAX`
/// bytes.
///
/// # Errors
/// If a directory of the tree cannot be read for another reason than a removal or missing permissions.
pub(super) fn measure_tree(directory: &File) -> io::Result<u64> {
    let mut tree = Tree {
        bases: vec![directory.try_clone()?],
        pending: vec![(0, PathBuf::new())],
    };
    let (mut bytes, mut entry_count) = (0_u64, 0_u64);
    while let Some((base, path)) = tree.pending.pop() {
        let Some((base, path, entries)) = unless_unavailable(tree.open(base, path))? else {
            continue;
        };
        if base >= BASES_MAX {
            return Ok(u64::MAX);
        }
        for entry in entries {
            let Ok((name, metadata)) = entry.and_then(|entry| Ok((entry.file_name(), entry.metadata()?))) else {
                continue;
            };
            if metadata.is_dir() {
                tree.pending.push((base, path.join(name)));
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

/// The part of a tree that has not been measured.
struct Tree {
    /// The bases: open directories, each inside the previous one.
    bases: Vec<File>,
    /// Directories to measure: the index of a base, and the path from this base. The indices never decrease.
    pending: Vec<(usize, PathBuf)>,
}

impl Tree {
    /// Opens a pending directory. Returns the index of its base, which may be new, its path from the base, and its entries.
    fn open(&mut self, base: usize, path: PathBuf) -> io::Result<(usize, PathBuf, ReadDir)> {
        self.bases.truncate(base + 1);
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            let entries = list(&self.bases[base], &path)?;
            return Ok((base, path, entries));
        }
        let new_base = open_dir(&self.bases[base], &path)?;
        // Without another pending directory below it, the old base is not needed any more.
        if self.pending.last().is_none_or(|(other, _)| *other != base) {
            self.bases.pop();
        }
        let entries = list(&new_base, Path::new(""))?;
        self.bases.push(new_base);
        Ok((self.bases.len() - 1, PathBuf::new(), entries))
    }
}

fn list(base: &File, path: &Path) -> io::Result<ReadDir> {
    if path.as_os_str().is_empty() {
        read_base_dir(base)
    } else {
        read_dir(base, path)
    }
}

/// Converts the error of a directory that was removed or replaced since it was listed, or that the host may not read, to
/// `None`.
fn unless_unavailable<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | PermissionDenied) => Ok(None),
        Err(error) => Err(error),
    }
}
