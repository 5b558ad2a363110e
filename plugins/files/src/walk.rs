//! Listing of directories.

use std::fs;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use crate::failure::failed_to;

/// Maximum depth of a walk.
pub const DEPTH_MAX: usize = 64;

/// The kind of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// Anything else.
    Other,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path.
    pub path: PathBuf,
    /// The kind.
    pub kind: EntryKind,
    /// The size of a regular file in bytes, and zero for any other entry.
    pub size: u64,
}

/// A glob for the paths below a directory.
#[derive(Debug)]
pub struct PathFilter {
    pattern: Pattern,
    applies_to_names: bool,
}

impl PathFilter {
    /// Parses a pattern. A pattern without `/` applies to file names.
    ///
    /// # Errors
    /// If the pattern is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let pattern = Pattern::new(text).map_err(|error| format!("the pattern `{text}` is invalid: {error}"))?;
        Ok(Self {
            pattern,
            applies_to_names: !text.contains('/'),
        })
    }

    /// Returns whether a path below `root` matches.
    #[must_use]
    pub fn matches(&self, root: &Path, path: &Path) -> bool {
        let options = MatchOptions {
            require_literal_separator: true,
            ..MatchOptions::new()
        };
        let part = if self.applies_to_names {
            path.file_name().map(Path::new)
        } else {
            path.strip_prefix(root).ok()
        };
        part.is_some_and(|part| self.pattern.matches_path_with(part, options))
    }
}

/// Calls a function for each entry below a directory, sorted by path, until the function returns false.
///
/// # Errors
/// If the directory cannot be read. Directories below it that cannot be read are skipped.
pub fn walk(root: &Path, depth: usize, visit: &mut dyn FnMut(Entry) -> bool) -> Result<(), String> {
    let mut pending = children(root, 1)?;
    pending.reverse();
    while let Some((entry, level)) = pending.pop() {
        let subdirectory =
            (entry.kind == EntryKind::Directory && level < depth.min(DEPTH_MAX)).then(|| entry.path.clone());
        if !visit(entry) {
            return Ok(());
        }
        if let Some(directory) = subdirectory {
            pending.extend(children(&directory, level + 1).unwrap_or_default().into_iter().rev());
        }
    }
    Ok(())
}

/// Reads the entries of a directory, sorted by path, each with its level.
fn children(directory: &Path, level: usize) -> Result<Vec<(Entry, usize)>, String> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed_to("list", directory))? {
        let entry = entry.map_err(failed_to("list", directory))?;
        let kind = match entry.file_type() {
            Ok(kind) if kind.is_symlink() => EntryKind::Link,
            Ok(kind) if kind.is_dir() => EntryKind::Directory,
            Ok(kind) if kind.is_file() => EntryKind::File,
            _ => EntryKind::Other,
        };
        let is_file = kind == EntryKind::File;
        let size = if is_file {
            entry.metadata().map_or(0, |metadata| metadata.len())
        } else {
            0
        };
        let path = entry.path();
        entries.push((Entry { path, kind, size }, level));
    }
    entries.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
    Ok(entries)
}

/// Lists the entries of a directory that match a pattern. The second value is whether there are more than `limit`.
///
/// # Errors
/// If the directory cannot be read.
pub fn list(
    root: &Path,
    depth: usize,
    filter: Option<&PathFilter>,
    limit: usize,
) -> Result<(Vec<Entry>, bool), String> {
    let (mut entries, mut is_truncated) = (Vec::new(), false);
    walk(root, depth, &mut |entry| {
        if filter.is_none_or(|filter| filter.matches(root, &entry.path)) {
            is_truncated = entries.len() >= limit;
            if !is_truncated {
                entries.push(entry);
            }
        }
        !is_truncated
    })?;
    Ok((entries, is_truncated))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(root: &Path, depth: usize, pattern: Option<&str>, limit: usize) -> (Vec<String>, bool) {
        let filter = pattern.map(|pattern| PathFilter::parse(pattern).unwrap());
        let (entries, is_truncated) = list(root, depth, filter.as_ref(), limit).unwrap();
        let name = |entry: &Entry| entry.path.strip_prefix(root).unwrap().display().to_string();
        (entries.iter().map(name).collect(), is_truncated)
    }

    #[test]
    fn depth_pattern_and_limit_select_entries() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("src/deep")).unwrap();
        for file in ["a.md", "src/b.rs", "src/deep/c.rs"] {
            fs::write(root.join(file), "x").unwrap();
        }
        assert_eq!(names(root, 1, None, 9).0, ["a.md", "src"]);
        assert_eq!(names(root, 9, Some("*.rs"), 9).0, ["src/b.rs", "src/deep/c.rs"]);
        assert_eq!(names(root, 9, Some("src/*.rs"), 9).0, ["src/b.rs"]);
        assert_eq!(names(root, 9, Some("**/*.rs"), 1), (vec!["src/b.rs".to_owned()], true));
        assert!(PathFilter::parse("a***").is_err());
        assert!(list(&root.join("a.md"), 1, None, 9).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_listed_and_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(".", directory.path().join("self")).unwrap();
        let (entries, _) = list(directory.path(), 9, None, 9).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].kind, EntryKind::Link);
    }
}
