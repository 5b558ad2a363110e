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

/// Maximum total size of the long results that a conversation stores, in bytes. Above this size, the oldest results are
/// dropped.
const STORED_BYTES_MAX: usize = 16 << 20;

/// Maximum length of the marker at the end of a part, in bytes. The marker states how to read the next part.
const MARKER_BYTES_MAX: usize = 200;

/// Maximum length of a line in a list of matching lines, in bytes. A longer line is cut.
const LINE_BYTES_MAX: usize = 400;

/// The long results of a conversation. Each has a short name, such as `r1`.
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
    /// The number of names assigned so far. It includes the names of dropped results.
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

    /// Stores a result that is too long for one message, and returns its first part. Returns `None` if the result fits
    /// into one message.
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

    /// Stores a result under the next name. Returns the name and the stored text. A result that is longer than
    /// [`STORED_BYTES_MAX`] is cut.
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

    /// Returns the part of a result that begins at the start position in the arguments. If the arguments contain a text to
    /// search for, returns the lines after this position that contain the text.
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

    /// Returns the lines after the byte `start` that contain a text, up to the maximum length of a part. Each line is
    /// listed with its number and the byte offset of the match.
    fn matching_lines(&self, name: &str, full: &str, start: usize, text: &str) -> String {
        let needle = text.to_ascii_lowercase();
        let mut listing = String::new();
        let mut line_start = start;
        let mut line_number = full[..start].matches('\n').count();
        for line in full[start..].split_inclusive('\n') {
            line_number += 1;
            let next_start = line_start + line.len();
            if let Some(offset) = line.to_ascii_lowercase().find(&needle) {
                let shown = excerpt_around(line, offset, needle.len());
                let listed_line = format!("line {line_number}, byte {}: {shown}\n", line_start + offset);
                if listing.len() + listed_line.len() > self.part_bytes_max && !listing.is_empty() {
                    let arguments = json!({"result": name, "offset": line_start, "contains": text});
                    listing.push_str(&format!(
                        "[more lines match; continue with `{READ_RESULT}` {arguments}]"
                    ));
                    return listing;
                }
                listing.push_str(&listed_line);
            }
            line_start = next_start;
        }
        if listing.is_empty() {
            "No line contains the text.".to_owned()
        } else {
            listing
        }
    }

    /// Returns the part that begins at the byte `start`, and the byte at which it ends. The part has a marker at its end if
    /// more text follows. A part has at least one character.
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

/// Returns the byte at which the requested part begins, from the offset or the line in the arguments. The default is 0.
///
/// # Errors
/// [`ToolError::Model`] if the arguments have both, or the position is not inside the result.
fn start_offset(input: &ReadResultArguments, full: &str) -> Result<usize, ToolError> {
    let invalid = |reason: String| Err(ToolError::invalid_arguments(reason));
    match (input.offset, input.line) {
        (Some(_), Some(_)) => invalid("/line: give an `offset` or a `line`, not both".to_owned()),
        (None, Some(0)) => invalid("/line: the first line is 1".to_owned()),
        (None, Some(line)) => match full.split_inclusive('\n').take(line - 1).fold((0, 0), count_line) {
            (lines, start) if lines == line - 1 && start < full.len() => Ok(start),
            (lines, _) => invalid(format!("/line: the result has only {lines} lines")),
        },
        (offset, None) => match offset.unwrap_or_default() {
            offset if offset >= full.len() => invalid(format!("/offset: the result ends at byte {}", full.len())),
            offset => Ok(full.floor_char_boundary(offset)),
        },
    }
}

/// Adds one line to a count of lines and to the count of their bytes.
fn count_line((lines, bytes): (usize, usize), line: &str) -> (usize, usize) {
    (lines + 1, bytes + line.len())
}

/// Returns the part of a line around a match of `match_length` bytes at `offset`, up to [`LINE_BYTES_MAX`].
fn excerpt_around(line: &str, offset: usize, match_length: usize) -> &str {
    let margin = LINE_BYTES_MAX.saturating_sub(match_length) / 2;
    let start = line.floor_char_boundary(offset.saturating_sub(margin));
    let end = line.floor_char_boundary(start.saturating_add(LINE_BYTES_MAX));
    line[start..end].trim_end()
}

/// Returns the tool that reads long results.
///
/// # Errors
/// If the schema of the tool is invalid. The schema is fixed, so this does not happen.
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

    fn read_from(results: &LongResults, result: &str, offset: usize) -> Result<String, ToolError> {
        results.read(&ReadResultArguments {
            result: result.to_owned(),
            offset: Some(offset),
            line: None,
            contains: None,
        })
    }

    /// Returns the arguments that read the first stored result.
    fn arguments(line: Option<usize>, contains: Option<&str>) -> ReadResultArguments {
        ReadResultArguments {
            result: "r1".to_owned(),
            offset: None,
            line,
            contains: contains.map(str::to_owned),
        }
    }

    /// Stores a long result with the lines `Line 1 ✓` to `Line 1000 ✓`.
    fn store_numbered_lines(results: &LongResults) {
        let lines: Vec<_> = (1..=1_000).map(|number| format!("Line {number} ✓")).collect();
        results.truncate(&lines.join("\n")).unwrap();
    }

    #[test]
    fn a_long_result_is_read_from_a_line() {
        let results = LongResults::new(1_000);
        store_numbered_lines(&results);
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
    fn lines_of_a_long_result_can_be_searched_for_a_text() {
        let results = LongResults::new(1_000);
        store_numbered_lines(&results);
        let found = results.read(&arguments(None, Some("lINE 999"))).unwrap();
        assert_eq!(found, "line 999, byte 12866: Line 999 ✓\n");
        let first_matches = results.read(&arguments(None, Some("ine"))).unwrap();
        assert!(first_matches.len() < 1_200, "{}", first_matches.len());
        let (_, continuation) = first_matches.rsplit_once("`read_result` ").unwrap();
        let next: ReadResultArguments = serde_json::from_str(continuation.trim_end_matches(']')).unwrap();
        let line_count = first_matches.lines().count() - 1;
        let next_matches = results.read(&next).unwrap();
        let next_line = format!("line {}, ", line_count + 1);
        assert!(next_matches.starts_with(&next_line), "{next_matches}");
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
            let part = read_from(&results, &cut.name, text.len()).unwrap();
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
            read_from(&results, "r1", 400)
                .unwrap_err()
                .to_string()
                .contains("ends at byte 400")
        );
        let error = read_from(&results, "r9", 0).unwrap_err();
        assert!(error.report().suggestion.as_ref().unwrap().ends_with("r1"));
    }

    #[test]
    fn the_oldest_results_are_dropped_beyond_the_storage_limit() {
        let results = LongResults::new(300);
        let large = "x".repeat(STORED_BYTES_MAX / 2 - 1);
        for _ in 0..3 {
            results.truncate(&large).unwrap();
        }
        assert!(read_from(&results, "r1", 0).is_err());
        assert!(read_from(&results, "r2", 0).is_ok());
        results.truncate(&"x".repeat(STORED_BYTES_MAX + 5)).unwrap();
        assert!(
            read_from(&results, "r4", 0).is_ok(),
            "the newest result is stored up to the limit"
        );
    }
}
