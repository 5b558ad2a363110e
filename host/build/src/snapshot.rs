//! Detects changes to the source files of a project.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// The names of directories that contain build outputs or installed packages. They are not source.
const IGNORED_DIRS: [&str; 3] = ["target", "node_modules", "__pycache__"];

/// The maximum number of files that are compared. Changes to further files are not detected.
const FILES_MAX: usize = 10_000;

/// The files of a project with their sizes and modification times.
///
/// Two snapshots of a project are equal if no file was saved, added or removed in between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceSnapshot(Vec<(PathBuf, u64, Option<SystemTime>)>);

impl SourceSnapshot {
    /// Lists the files in `dir` and its subdirectories, except hidden files and build outputs. Symbolic links are not
    /// followed.
    ///
    /// # Errors
    ///
    /// The error of the operating system if `dir` cannot be read. A file or subdirectory that cannot be read is left
    /// out.
    pub fn of(dir: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        let mut dirs = vec![dir.to_owned()];
        let mut is_root = true;
        while let Some(dir) = dirs.pop() {
            let entries = match fs::read_dir(&dir) {
                Ok(entries) => entries,
                Err(error) if is_root => return Err(error),
                Err(_unreadable) => continue,
            };
            is_root = false;
            for entry in entries.flatten() {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let Ok(metadata) = entry.metadata() else { continue };
                if name.starts_with('.') || metadata.is_dir() && IGNORED_DIRS.contains(&&*name) {
                    continue;
                }
                if metadata.is_dir() {
                    dirs.push(entry.path());
                } else if files.len() < FILES_MAX {
                    files.push((entry.path(), metadata.len(), metadata.modified().ok()));
                }
            }
        }
        files.sort();
        Ok(Self(files))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_file_changes_the_snapshot_and_a_build_output_does_not() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("app.py"), "a").unwrap();
        let before = SourceSnapshot::of(dir.path()).unwrap();
        fs::create_dir(dir.path().join("target")).unwrap();
        fs::write(dir.path().join("target/out.wasm"), "a").unwrap();
        assert_eq!(SourceSnapshot::of(dir.path()).unwrap(), before);
        fs::write(dir.path().join("app.py"), "ab").unwrap();
        assert_ne!(SourceSnapshot::of(dir.path()).unwrap(), before);
        assert!(SourceSnapshot::of(&dir.path().join("missing")).is_err());
    }
}
