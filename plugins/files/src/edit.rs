//! Reading, writing and editing one file.

use std::fs;
use std::path::Path;

use crate::failure::failed_to;

/// Maximum size of a file in bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// A part of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The lines.
    pub text: String,
    /// The number of the first line, counted from 1.
    pub first_line: usize,
    /// The number of lines of the file.
    pub total_lines: usize,
}

/// Reads a text file.
///
/// # Errors
/// If it cannot be read, is too large or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, String> {
    let size = fs::metadata(path).map_err(failed_to("read", path))?.len();
    if size > FILE_BYTES_MAX {
        let limit = FILE_BYTES_MAX >> 20;
        return Err(format!(
            "`{}` has {size} bytes; the limit is {limit} MiB",
            path.display()
        ));
    }
    let bytes = fs::read(path).map_err(failed_to("read", path))?;
    String::from_utf8(bytes).map_err(|_| format!("`{}` is not UTF-8 text", path.display()))
}

/// Reads lines of a text file. Lines count from 1.
///
/// # Errors
/// As [`read_text`], and if the file has no such line.
pub fn read(path: &Path, first_line: usize, lines: usize) -> Result<Excerpt, String> {
    let text = read_text(path)?;
    let total_lines = text.lines().count();
    if first_line == 0 || first_line > total_lines.max(1) {
        return Err(format!(
            "line {first_line} does not exist; `{}` has {total_lines} lines",
            path.display()
        ));
    }
    let excerpt = text.split_inclusive('\n').skip(first_line - 1).take(lines).collect();
    Ok(Excerpt {
        text: excerpt,
        first_line,
        total_lines,
    })
}

/// Writes a text file and its missing parent directories. Returns the number of bytes.
///
/// # Errors
/// If the file exists and must not be replaced, or cannot be written.
pub fn write(path: &Path, text: &str, overwrite: bool) -> Result<u64, String> {
    if !overwrite && path.symlink_metadata().is_ok() {
        return Err(format!("`{}` exists; set `overwrite` to replace it", path.display()));
    }
    if let Some(directory) = path.parent()
        && !directory.is_dir()
    {
        fs::create_dir_all(directory).map_err(failed_to("create", directory))?;
    }
    fs::write(path, text).map_err(failed_to("write", path))?;
    Ok(text.len() as u64)
}

/// Replaces a text in a file. Returns the number of replacements.
///
/// # Errors
/// If the text does not occur, or occurs more than once and `all` is false, or the file cannot be written.
pub fn edit(path: &Path, old: &str, new: &str, all: bool) -> Result<usize, String> {
    if old.is_empty() {
        return Err("`old` is empty; `write-file` creates a file".to_owned());
    }
    let text = read_text(path)?;
    let count = text.matches(old).count();
    match count {
        0 => return Err(format!("`old` does not occur in `{}`", path.display())),
        2.. if !all => {
            return Err(format!(
                "`old` occurs {count} times in `{}`; add surrounding lines, or set `all`",
                path.display()
            ));
        }
        _ => {}
    }
    fs::write(path, text.replace(old, new)).map_err(failed_to("write", path))?;
    Ok(count)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one_and_keep_their_line_breaks() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b.txt");
        assert_eq!(write(&path, "one\ntwo\nthree", false), Ok(13));
        let excerpt = read(&path, 2, 1).unwrap();
        assert_eq!((excerpt.text.as_str(), excerpt.total_lines), ("two\n", 3));
        assert_eq!(read(&path, 1, usize::MAX).unwrap().text, "one\ntwo\nthree");
        assert!(read(&path, 4, 1).unwrap_err().contains("has 3 lines"));
        assert!(read(&path, 0, 1).is_err());
    }

    #[test]
    fn an_edit_is_unambiguous_and_a_file_is_not_replaced_by_accident() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        write(&path, "x = 1\nx = 1\ny = 2\n", false).unwrap();
        assert!(write(&path, "", false).unwrap_err().contains("exists"));
        assert_eq!(edit(&path, "y = 2", "y = 3", false), Ok(1));
        assert!(edit(&path, "x = 1", "x = 2", false).unwrap_err().contains("2 times"));
        assert!(edit(&path, "z", "", false).unwrap_err().contains("does not occur"));
        assert!(edit(&path, "", "z", false).is_err());
        assert_eq!(edit(&path, "x = 1", "x = 2", true), Ok(2));
        assert_eq!(fs::read_to_string(&path).unwrap(), "x = 2\nx = 2\ny = 3\n");
    }

    #[test]
    fn binary_and_missing_files_are_refused_with_a_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.bin");
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(read_text(&path).unwrap_err().contains("not UTF-8"));
        assert!(
            read_text(&directory.path().join("b"))
                .unwrap_err()
                .contains("does not exist")
        );
    }
}
