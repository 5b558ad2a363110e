//! The text files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// Directories without sources: version control, build output, dependencies of other languages.
const SKIPPED: [&str; 3] = [".git", "target", "node_modules"];

/// A text file, with its path relative to the root of the repository.
pub(crate) struct TextFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl TextFile {
    /// Returns the position of a line in the form that editors recognise. Lines count from 1.
    pub(crate) fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|found| found == extension)
    }

    /// Returns a file that exists only in a test of a checker.
    pub(crate) fn made_up(path: &str, text: &str) -> Self {
        TextFile {
            path: path.into(),
            text: text.to_owned(),
        }
    }
}

/// Reads every text file below a directory of the repository (`""` is its root), in the order of their paths.
pub(crate) fn read_below(directory: &str) -> Vec<TextFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests are in the repository");
    let mut files = Vec::new();
    collect(root, &root.join(directory), &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn collect(root: &Path, directory: &Path, files: &mut Vec<TextFile>) {
    for entry in fs::read_dir(directory).expect("a directory of the repository can be read") {
        let entry = entry.expect("an entry of the repository can be read");
        let kind = entry.file_type().expect("an entry has a type");
        if SKIPPED.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if kind.is_dir() {
            collect(root, &entry.path(), files);
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).expect("a file of the repository can be read");
            let path = entry
                .path()
                .strip_prefix(root)
                .expect("the entry is below the root")
                .to_owned();
            // Files that are not UTF-8, such as components and pictures, are skipped.
            files.extend(String::from_utf8(bytes).ok().map(|text| TextFile { path, text }));
        }
    }
}
