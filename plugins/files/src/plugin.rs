//! The WIT bindings of the file tools.

use std::fs;
use std::path::Path;

use wasip2::filesystem::preopens::get_directories;

use self::bindings::exports::toolwit_demo::files::files as wit;
use crate::edit;
use crate::search;
use crate::walk::{self, EntryKind, PathFilter};

#[allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications)]
mod bindings {
    toolwit_guest::bindings!();
}

bindings::export!(Plugin with_types_in bindings);

/// Default maximum number of entries.
const ENTRIES_DEFAULT: u32 = 500;

/// Default maximum number of matches.
const MATCHES_DEFAULT: u32 = 100;

struct Plugin;

impl wit::Guest for Plugin {
    fn read_file(path: String, first_line: Option<u32>, lines: Option<u32>) -> Result<wit::Excerpt, String> {
        let lines = lines.map_or(usize::MAX, |lines| lines as usize);
        let excerpt = edit::read(Path::new(&path), first_line.unwrap_or(1) as usize, lines)?;
        Ok(wit::Excerpt {
            text: excerpt.text,
            first_line: count(excerpt.first_line),
            total_lines: count(excerpt.total_lines),
        })
    }

    fn list_files(
        path: Option<String>,
        depth: Option<u32>,
        pattern: Option<String>,
        limit: Option<u32>,
    ) -> Result<wit::Listing, String> {
        let Some(path) = path else { return Ok(list_granted()) };
        let filter = pattern.as_deref().map(PathFilter::parse).transpose()?;
        // A pattern can match entries on every level.
        let levels = if pattern.is_some() { u32::MAX } else { 1 };
        let depth = depth.unwrap_or(levels) as usize;
        let limit = limit.unwrap_or(ENTRIES_DEFAULT) as usize;
        let (entries, truncated) = walk::list(Path::new(&path), depth, filter.as_ref(), limit)?;
        let entries = entries.into_iter().map(Into::into).collect();
        Ok(wit::Listing { entries, truncated })
    }

    fn search_files(
        path: String,
        pattern: String,
        ignore_case: Option<bool>,
        files: Option<String>,
        limit: Option<u32>,
    ) -> Result<wit::Matches, String> {
        let files = files.as_deref().map(PathFilter::parse).transpose()?;
        let limit = limit.unwrap_or(MATCHES_DEFAULT) as usize;
        let ignore_case = ignore_case.unwrap_or(false);
        let result = search::search(Path::new(&path), &pattern, ignore_case, files.as_ref(), limit)?;
        let matches = result.matches.into_iter().map(|line| wit::Match {
            path: line.path.display().to_string(),
            line: count(line.line),
            text: line.text,
        });
        Ok(wit::Matches {
            matches: matches.collect(),
            searched_files: count(result.searched_files),
            truncated: result.is_truncated,
        })
    }

    fn write_file(path: String, text: String, overwrite: Option<bool>) -> Result<u64, String> {
        edit::write(Path::new(&path), &text, overwrite.unwrap_or(false))
    }

    fn edit_file(path: String, old: String, new: String, all: Option<bool>) -> Result<u32, String> {
        edit::edit(Path::new(&path), &old, &new, all.unwrap_or(false)).map(count)
    }
}

/// Lists the granted directories. The host reports `/` even if it is not granted, so `/` is listed only if it is the only
/// directory and can be read.
fn list_granted() -> wit::Listing {
    let mut paths: Vec<String> = get_directories().into_iter().map(|(_, path)| path).collect();
    let has_others = paths.iter().any(|path| path != "/");
    paths.retain(|path| path != "/" || !has_others && fs::read_dir("/").is_ok());
    let entries = paths.into_iter().map(|path| wit::Entry {
        path,
        kind: wit::EntryKind::Directory,
        size: 0,
    });
    wit::Listing {
        entries: entries.collect(),
        truncated: false,
    }
}

/// Converts a count for the caller. `usize` has 32 bits on this target.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl From<walk::Entry> for wit::Entry {
    fn from(entry: walk::Entry) -> Self {
        Self {
            path: entry.path.display().to_string(),
            kind: match entry.kind {
                EntryKind::File => wit::EntryKind::File,
                EntryKind::Directory => wit::EntryKind::Directory,
                EntryKind::Link => wit::EntryKind::Link,
                EntryKind::Other => wit::EntryKind::Other,
            },
            size: entry.size,
        }
    }
}
