//! Results that are too long for one message, and the tool that reads them in parts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use toolwit_core::{EffectClass, NativeTool, ToolContext, ToolError, ToolId};
use toolwit_core::{Error, ErrorKind, Phase};

/// The name of the tool that reads long results.
pub(crate) const READ_RESULT: &str = "read_result";

/// Maximum total size of the long results that a conversation stores, in bytes. Beyond it, the oldest are dropped.
const STORED_BYTES_MAX: usize = 16 << 20;

/// The space that the marker at the end of a part may take, in bytes.
const MARKER_BYTES_MAX: usize = 200;

/// Maximum length of a line with a match, in bytes. A longer line is cut.
const LINE_BYTES_MAX: usize = 400;

/// The long results of a conversation, each under a short name.
pub(crate) struct LongResults {
    /// Maximum length of a part without its marker, in bytes.
    part_bytes_max: usize,
    stored: Mutex<StoredResults>,
}

#[derive(Default)]
struct StoredResults {
    /// The results with their names, the oldest first.
    results: VecDeque<(String, Arc<str>)>,
    /// The size of all results together.
    bytes: usize,
    /// The number of names that were assigned.
    name_count: u64,
}

/// The first part of a long result.
pub(crate) struct TruncatedResult {
    /// The text for the model, with a marker at its end.
    pub(crate) content: String,
    /// The name under which the result is stored.
    pub(crate) name: String,
    /// The number of bytes of the result that `content` shows.
    pub(crate) shown_bytes: usize,
}

impl LongResults {
    pub(crate) fn new(result_bytes_max: usize) -> Self {
        Self {
            part_bytes_max: result_bytes_max.saturating_sub(MARKER_BYTES_MAX).max(1),
            stored: Mutex::default(),
        }
    }

    /// Stores a result that is too long and returns its first part. Returns `None` if it fits into one message.
    pub(crate) fn truncate(&self, content: &str) -> Option<TruncatedResult> {
        if content.len() <= self.part_bytes_max + MARKER_BYTES_MAX {
            return None;
        }
        let (name, full) = self.store(content);
        let (content, end) = self.part(&name, &full, 0);
        Some(TruncatedResult {
            content,
            name,
            shown_bytes: end,
        })
    }

    /// Stores a result under the next name, and returns both. A result over [`STORED_BYTES_MAX`] is cut.
    pub(crate) fn store(&self, content: &str) -> (String, Arc<str>) {
        let full: Arc<str> = content[..content.floor_char_boundary(STORED_BYTES_MAX)].into();
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        stored.name_count += 1;
        let name = format!("r{}", stored.name_count);
        stored.bytes += full.len();
        stored.results.push_back((name.clone(), full.clone()));
        while stored.bytes > STORED_BYTES_MAX {
            let Some((_, oldest)) = stored.results.pop_front() else {
                break;
            };
            stored.bytes -= oldest.len();
        }
        (name, full)
    }

    /// Returns the part that begins at an offset or a line, or the lines from there that contain a text.
    fn read(&self, input: &ReadResultArguments) -> Result<String, ToolError> {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let full = stored.results.iter().find(|(name, _)| *name == input.result);
        let Some(full) = full.map(|(_, full)| full.clone()) else {
            let names: Vec<_> = stored.results.iter().map(|(name, _)| name.as_str()).collect();
            let error = Error::new(
                ErrorKind::InvalidArguments,
                Phase::Validate,
                "this result was never stored, or was dropped to store newer ones",
            );
            return Err(ToolError::Model(
                error.with_suggestion(format!("the stored results are: {}", names.join(", "))),
            ));
        };
        drop(stored);
        let start = start_offset(input, &full)?;
        match input.contains.as_deref() {
            None => Ok(self.part(&input.result, &full, start).0),
            Some("") => Err(ToolError::invalid_arguments("/contains: the text must not be empty")),
            Some(text) => Ok(self.matching_lines(&input.result, &full, start, text)),
        }
    }

    /// Returns the lines from `start` on that contain a text, each with its number and the byte of the match, up to the
    /// maximum length of a part.
    fn matching_lines(&self, name: &str, full: &str, start: usize, text: &str) -> String {
        let needle = text.to_ascii_lowercase();
        let mut listing = String::new();
        let mut line_start = start;
        let mut number = full[..start].matches('\n').count();
        for line in full[start..].split_inclusive('\n') {
            number += 1;
            let next_start = line_start + line.len();
            if let Some(offset) = line.to_ascii_lowercase().find(&needle) {
                let shown = excerpt_around(line, offset, needle.len());
                let entry = format!("line {number}, byte {}: {shown}\n", line_start + offset);
                if listing.len() + entry.len() > self.part_bytes_max && !listing.is_empty() {
                    let arguments = json!({"result": name, "offset": line_start, "contains": text});
                    listing.push_str(&format!(
                        "[more lines match; continue with `{READ_RESULT}` {arguments}]"
                    ));
                    return listing;
                }
                listing.push_str(&entry);
            }
            line_start = next_start;
        }
        if listing.is_empty() {
            "No line contains the text.".to_owned()
        } else {
            listing
        }
    }

    /// Returns the part that begins at `start`, with a marker if more follows, and the end of the part. A part has at
    /// least one character.
    fn part(&self, name: &str, full: &str, start: usize) -> (String, usize) {
        let mut end = full.floor_char_boundary(start.saturating_add(self.part_bytes_max));
        if end <= start {
            end = full.ceil_char_boundary(start + 1);
        }
        let text = &full[start..end];
        if end == full.len() {
            return (text.to_owned(), end);
        }
        let marker = format!(
            "\n[cut: bytes {start} to {end} of {}; continue with `{READ_RESULT}` {{\"result\": \"{name}\", \"offset\": {end}}}]",
            full.len()
        );
        (format!("{text}{marker}"), end)
    }
}

/// The arguments of `read_result`.
#[derive(Deserialize, JsonSchema)]
struct ReadResultArguments {
    /// The name of the result, from the marker at the end of the cut text.
    result: String,
    /// The byte at which to begin, such as that from the marker. Default: 0.
    offset: Option<usize>,
    /// The line at which to begin, from 1, instead of a byte.
    line: Option<usize>,
    /// Returns only the lines that contain this text, whatever the case of ASCII letters, with their numbers.
    contains: Option<String>,
}

/// Returns the byte at which to begin, from the offset or the line in the arguments. By default, it is 0.
///
/// # Errors
/// [`ToolError::Model`] if the arguments have both, or the position is not inside the result.
fn start_offset(input: &ReadResultArguments, full: &str) -> Result<usize, ToolError> {
    let refused = |reason: String| Err(ToolError::invalid_arguments(reason));
    match (input.offset, input.line) {
        (Some(_), Some(_)) => refused("/line: give an `offset` or a `line`, not both".to_owned()),
        (None, Some(0)) => refused("/line: the first line is 1".to_owned()),
        (None, Some(line)) => match full.split_inclusive('\n').take(line - 1).fold((0, 0), count_line) {
            (lines, start) if lines == line - 1 && start < full.len() => Ok(start),
            (lines, _) => refused(format!("/line: the result has only {lines} lines")),
        },
        (offset, None) => match offset.unwrap_or_default() {
            offset if offset >= full.len() => refused(format!("/offset: the result ends at byte {}", full.len())),
            offset => Ok(full.floor_char_boundary(offset)),
        },
    }
}

/// Adds a line to a number of lines and to the number of their bytes.
fn count_line((lines, bytes): (usize, usize), line: &str) -> (usize, usize) {
    (lines + 1, bytes + line.len())
}

/// Returns a line, cut to [`LINE_BYTES_MAX`] around a match of `length` bytes at `offset`.
fn excerpt_around(line: &str, offset: usize, length: usize) -> &str {
    let margin = LINE_BYTES_MAX.saturating_sub(length) / 2;
    let start = line.floor_char_boundary(offset.saturating_sub(margin));
    let end = line.floor_char_boundary(start.saturating_add(LINE_BYTES_MAX));
    line[start..end].trim_end()
}

/// Returns the tool that reads long results.
///
/// # Errors
/// Never in practice: its schema is fixed.
pub(crate) fn read_result_tool(results: Arc<LongResults>) -> Result<NativeTool, Error> {
    let tool = NativeTool::typed_as(
        ToolId::host(READ_RESULT),
        vec![READ_RESULT.to_owned()],
        "Reads a part of a result that was too long for one message, or the lines that contain a text.",
        move |input: ReadResultArguments, _: ToolContext| {
            let part = results.read(&input);
            async move { part }
        },
    )?;
    Ok(tool.with_effect(EffectClass::Read))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(results: &LongResults, result: &str, offset: usize) -> Result<String, ToolError> {
        results.read(&ReadResultArguments {
            result: result.to_owned(),
            offset: Some(offset),
            line: None,
            contains: None,
        })
    }

    fn arguments(line: Option<usize>, contains: Option<&str>) -> ReadResultArguments {
        ReadResultArguments {
            result: "r1".to_owned(),
            offset: None,
            line,
            contains: contains.map(str::to_owned),
        }
    }

    fn numbered_lines(results: &LongResults) {
        let lines: Vec<_> = (1..=1_000).map(|number| format!("Line {number} ✓")).collect();
        results.truncate(&lines.join("\n")).unwrap();
    }

    #[test]
    fn a_long_result_is_read_from_a_line() {
        let results = LongResults::new(1_000);
        numbered_lines(&results);
        for (line, start) in [(1, "Line 1 ✓\nLine 2"), (500, "Line 500 ✓\n"), (1_000, "Line 1000 ✓")] {
            let part = results.read(&arguments(Some(line), None)).unwrap();
            assert!(part.starts_with(start), "{part}");
        }
        for (line, reason) in [
            (0, "first line is 1"),
            (1_001, "1000 lines"),
            (usize::MAX, "1000 lines"),
        ] {
            let error = results.read(&arguments(Some(line), None)).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
        let both = ReadResultArguments {
            offset: Some(0),
            ..arguments(Some(1), None)
        };
        assert!(results.read(&both).unwrap_err().to_string().contains("not both"));
    }

    #[test]
    fn lines_of_a_long_result_are_searched() {
        let results = LongResults::new(1_000);
        numbered_lines(&results);
        let found = results.read(&arguments(None, Some("lINE 999"))).unwrap();
        assert_eq!(found, "line 999, byte 12866: Line 999 ✓\n");
        let many = results.read(&arguments(None, Some("ine"))).unwrap();
        assert!(many.len() < 1_200, "{}", many.len());
        let (_, continuation) = many.rsplit_once("`read_result` ").unwrap();
        let next: ReadResultArguments = serde_json::from_str(continuation.trim_end_matches(']')).unwrap();
        let shown = many.lines().count() - 1;
        let more = results.read(&next).unwrap();
        assert!(more.starts_with(&format!("line {}, ", shown + 1)), "{more}");
        assert_eq!(
            results.read(&arguments(None, Some("absent"))).unwrap(),
            "No line contains the text."
        );
        let empty = results.read(&arguments(None, Some(""))).unwrap_err();
        assert!(empty.to_string().contains("empty"), "{empty}");
    }

    #[test]
    fn a_match_in_a_very_long_line_is_shown_with_its_surroundings() {
        let results = LongResults::new(1_000);
        let full = format!("{}needle{}", "ä".repeat(5_000), "ö".repeat(5_000));
        results.truncate(&full).unwrap();
        let found = results.read(&arguments(None, Some("needle"))).unwrap();
        assert!(
            found.starts_with("line 1, byte 10000: ä") && found.contains("äneedleö"),
            "{found}"
        );
        assert!(found.len() < 500, "{}", found.len());
    }

    // attack: B5
    #[test]
    fn a_long_result_is_read_to_its_end_in_parts() {
        let results = LongResults::new(1000);
        let full = "grüße ✓ ".repeat(1000);
        let cut = results.truncate(&full).unwrap();
        let mut text = cut.content.split("\n[cut").next().unwrap().to_owned();
        assert_eq!(text.len(), cut.shown_bytes);
        while text.len() < full.len() {
            let part = read(&results, &cut.name, text.len()).unwrap();
            assert!(part.len() <= 1000, "{}", part.len());
            text.push_str(part.split("\n[cut").next().unwrap());
        }
        assert_eq!(text, full);
    }

    #[test]
    fn a_result_that_fits_is_not_cut() {
        assert!(LongResults::new(1000).truncate(&"x".repeat(1000)).is_none());
        assert!(LongResults::new(1000).truncate(&"x".repeat(1001)).is_some());
    }

    #[test]
    fn reading_beyond_the_end_or_an_unknown_result_is_refused() {
        let results = LongResults::new(300);
        results.truncate(&"x".repeat(400)).unwrap();
        assert!(
            read(&results, "r1", 400)
                .unwrap_err()
                .to_string()
                .contains("ends at byte 400")
        );
        let error = read(&results, "r9", 0).unwrap_err();
        assert!(error.report().suggestion.as_ref().unwrap().ends_with("r1"));
    }

    #[test]
    fn the_oldest_results_are_dropped_beyond_the_storage_limit() {
        let results = LongResults::new(300);
        let large = "x".repeat(STORED_BYTES_MAX / 2 - 1);
        for _ in 0..3 {
            results.truncate(&large).unwrap();
        }
        assert!(read(&results, "r1", 0).is_err());
        assert!(read(&results, "r2", 0).is_ok());
        results.truncate(&"x".repeat(STORED_BYTES_MAX + 5)).unwrap();
        assert!(read(&results, "r4", 0).is_ok(), "the newest is stored up to the limit");
    }
}
