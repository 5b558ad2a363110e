//! Results that are too long for one message, and the tool that reads them in parts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;

use toolwit_core::{EffectClass, NativeTool, ToolContext, ToolError, ToolId};
use toolwit_core::{Error, ErrorKind, Phase};

/// The name of the tool that reads long results.
pub(crate) const READ_RESULT: &str = "read_result";

/// Maximum total size of the long results that a conversation stores, in bytes. Beyond it, the oldest are dropped.
const STORED_BYTES_MAX: usize = 16 << 20;

/// Maximum length of the marker at the end of a part, in bytes.
const MARKER_BYTES_MAX: usize = 200;

/// The long results of a conversation, each under a short name.
pub(crate) struct LongResults {
    part_bytes_max: usize,
    stored: Mutex<StoredResults>,
}

#[derive(Default)]
struct StoredResults {
    results: VecDeque<(String, Arc<str>)>,
    bytes: usize,
    /// The number of names that were assigned.
    names: u64,
}

/// The first part of a long result.
pub(crate) struct TruncatedResult {
    /// The text for the model, with a marker at its end.
    pub(crate) content: String,
    /// The name under which the result is stored.
    pub(crate) name: String,
    /// The size of the part of the result in `content`, in bytes.
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

    /// Stores a result under the next name.
    pub(crate) fn store(&self, content: &str) -> (String, Arc<str>) {
        let full: Arc<str> = content[..content.floor_char_boundary(STORED_BYTES_MAX)].into();
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        stored.names += 1;
        let name = format!("r{}", stored.names);
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

    /// Returns the part that begins at an offset, with a marker unless it is the last.
    fn read(&self, input: &ReadResultArguments) -> Result<String, ToolError> {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let full = stored.results.iter().find(|(name, _)| *name == input.result);
        let Some(full) = full.map(|(_, full)| full.clone()) else {
            let names: Vec<_> = stored.results.iter().map(|(name, _)| name.as_str()).collect();
            let error = Error::new(
                ErrorKind::InvalidArguments,
                Phase::Validate,
                "this result is not stored, or no longer",
            );
            return Err(ToolError::Model(
                error.with_suggestion(format!("the stored results are: {}", names.join(", "))),
            ));
        };
        drop(stored);
        if input.offset >= full.len() {
            return Err(ToolError::invalid_arguments(format!(
                "/offset: the result ends at byte {}",
                full.len()
            )));
        }
        Ok(self
            .part(&input.result, &full, full.floor_char_boundary(input.offset))
            .0)
    }

    /// Returns the part that begins at `start`, and its end. A part has at least one character.
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
    /// The byte at which to continue, from the marker.
    offset: usize,
}

/// Returns the tool that reads long results.
///
/// # Errors
/// Never in practice: its schema is fixed.
pub(crate) fn read_result_tool(results: Arc<LongResults>) -> Result<NativeTool, Error> {
    let tool = NativeTool::typed_as(
        ToolId::host(READ_RESULT),
        vec![READ_RESULT.to_owned()],
        "Reads the next part of a result that was too long for one message.",
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
            offset,
        })
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
