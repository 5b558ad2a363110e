//! Search in files.

use std::fs;
use std::path::{Path, PathBuf};

use regex::{Regex, RegexBuilder};

use crate::edit::read_text;
use crate::failure::failed_to;
use crate::walk::{DEPTH_MAX, EntryKind, PathFilter, walk};

/// Maximum number of characters of a line in a result.
const LINE_CHARS_MAX: usize = 400;

/// A line that matches.
#[derive(Debug, PartialEq, Eq)]
pub struct Match {
    /// The path of the file.
    pub path: PathBuf,
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The line, shortened.
    pub text: String,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct Matches {
    /// The matching lines.
    pub matches: Vec<Match>,
    /// The number of files that were searched.
    pub searched_files: usize,
    /// Whether there are more matches than the limit.
    pub is_truncated: bool,
}

impl Matches {
    /// Searches one file. Skips a file that is not text, is too large or cannot be read.
    fn search_file(&mut self, path: &Path, pattern: &Regex, limit: usize) {
        let Ok(text) = read_text(path) else { return };
        self.searched_files += 1;
        for (index, line) in text.lines().enumerate() {
            if !pattern.is_match(line) {
                continue;
            }
            if self.matches.len() >= limit {
                self.is_truncated = true;
                return;
            }
            self.matches.push(Match {
                path: path.to_owned(),
                line: index + 1,
                text: line.chars().take(LINE_CHARS_MAX).collect(),
            });
        }
    }
}

/// Searches a file, or all files below a directory.
///
/// # Errors
/// If the pattern is invalid, or the path cannot be read.
pub fn search(
    path: &Path,
    pattern: &str,
    ignore_case: bool,
    files: Option<&PathFilter>,
    limit: usize,
) -> Result<Matches, String> {
    let pattern = RegexBuilder::new(pattern).case_insensitive(ignore_case).build();
    let pattern = pattern.map_err(|error| format!("the pattern is invalid: {error}"))?;
    let mut result = Matches::default();
    if fs::metadata(path).map_err(failed_to("search", path))?.is_file() {
        result.search_file(path, &pattern, limit);
        return Ok(result);
    }
    walk(path, DEPTH_MAX, &mut |entry| {
        let is_searched = entry.kind == EntryKind::File && files.is_none_or(|files| files.matches(path, &entry.path));
        if is_searched {
            result.search_file(&entry.path, &pattern, limit);
        }
        !result.is_truncated
    })?;
    Ok(result)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_with_their_positions_and_binary_files_are_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("a.rs"), "fn a() {}\n// TODO: b\n").unwrap();
        fs::write(root.join("b.md"), "todo\n").unwrap();
        fs::write(root.join("c.bin"), b"TODO\xff").unwrap();
        let result = search(root, "todo", true, None, 9).unwrap();
        assert_eq!((result.searched_files, result.matches.len()), (2, 2));
        assert_eq!(
            (result.matches[0].line, result.matches[0].text.as_str()),
            (2, "// TODO: b")
        );
        assert_eq!(search(root, "todo", false, None, 9).unwrap().matches.len(), 1);
        let filter = PathFilter::parse("*.rs").unwrap();
        assert_eq!(search(root, "todo", true, Some(&filter), 9).unwrap().searched_files, 1);
        assert!(search(root, "todo", true, None, 1).unwrap().is_truncated);
        assert_eq!(
            search(&root.join("b.md"), "t.do", false, None, 9)
                .unwrap()
                .matches
                .len(),
            1
        );
        assert!(search(root, "(", false, None, 9).is_err());
        assert!(search(&root.join("x"), "a", false, None, 9).is_err());
    }
}
