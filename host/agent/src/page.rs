//! Results that are too long to be read at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;

use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{NativeTool, ToolContext, ToolError, ToolId};

/// The name of the tool that reads on.
pub(super) const READ_RESULT: &str = "read_result";

/// How much of long results a conversation keeps, in bytes; beyond it the oldest are given up.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// What the marker at the end of a piece takes at most, in bytes.
const MARKER_BYTES_MAX: usize = 200;

/// The long results of a conversation, each under a short name.
pub(super) struct Pages {
    piece_bytes_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    results: VecDeque<(String, Arc<str>)>,
    bytes: usize,
    named: u64,
}

/// The beginning of a result that was too long.
pub(super) struct Cut {
    /// What the model reads.
    pub(super) content: String,
    /// The name under which it is read on.
    pub(super) result: String,
    /// How much of it the model reads, in bytes.
    pub(super) shown_bytes: usize,
}

impl Pages {
    pub(super) fn new(result_bytes_max: usize) -> Self {
        Self {
            piece_bytes_max: result_bytes_max.saturating_sub(MARKER_BYTES_MAX).max(1),
            kept: Mutex::default(),
        }
    }

    /// Cuts a result that is too long, and keeps the whole of it to be read on.
    pub(super) fn cut(&self, content: &str) -> Option<Cut> {
        if content.len() <= self.piece_bytes_max + MARKER_BYTES_MAX {
            return None;
        }
        let whole: Arc<str> = content[..content.floor_char_boundary(KEPT_BYTES_MAX)].into();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.named += 1;
        let result = format!("r{}", kept.named);
        kept.bytes += whole.len();
        kept.results.push_back((result.clone(), whole.clone()));
        while kept.bytes > KEPT_BYTES_MAX {
            let Some((_, oldest)) = kept.results.pop_front() else {
                break;
            };
            kept.bytes -= oldest.len();
        }
        drop(kept);
        let (content, end) = self.piece(&result, &whole, 0);
        Some(Cut {
            content,
            result,
            shown_bytes: end,
        })
    }

    /// Returns the piece that begins at an offset, with a marker when it is not the last.
    fn read(&self, input: &ReadResult) -> Result<String, ToolError> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = kept.results.iter().find(|(name, _)| *name == input.result);
        let Some(whole) = whole.map(|(_, whole)| whole.clone()) else {
            let names: Vec<_> = kept.results.iter().map(|(name, _)| name.as_str()).collect();
            let error = Error::new(
                ErrorKind::InvalidArguments,
                Phase::Validate,
                "there is no such result any more",
            );
            return Err(ToolError::Model(
                error.with_suggestion(format!("the results kept are: {}", names.join(", "))),
            ));
        };
        drop(kept);
        if input.offset >= whole.len() {
            return Err(ToolError::invalid_arguments(format!(
                "/offset: the result ends at byte {}",
                whole.len()
            )));
        }
        Ok(self
            .piece(&input.result, &whole, whole.floor_char_boundary(input.offset))
            .0)
    }

    /// Writes the piece that begins at `start`, and says where it ends. Pieces move on by at least one character.
    fn piece(&self, result: &str, whole: &str, start: usize) -> (String, usize) {
        let mut end = whole.floor_char_boundary(start.saturating_add(self.piece_bytes_max));
        if end <= start {
            end = whole.ceil_char_boundary(start + 1);
        }
        let text = &whole[start..end];
        if end == whole.len() {
            return (text.to_owned(), end);
        }
        let marker = format!(
            "\n[cut: bytes {start} to {end} of {}; read on with `{READ_RESULT}` {{\"result\": \"{result}\", \"offset\": {end}}}]",
            whole.len()
        );
        (format!("{text}{marker}"), end)
    }
}

/// What `read_result` takes.
#[derive(Deserialize, JsonSchema)]
struct ReadResult {
    /// The result's name, as the marker at the end of the cut text gives it.
    result: String,
    /// The byte to read on from, as the marker gives it.
    offset: usize,
}

/// Makes the tool that reads on in long results.
///
/// # Errors
/// None in practice: its schema is fixed.
pub(super) fn read_result(pages: Arc<Pages>) -> Result<NativeTool, Error> {
    NativeTool::typed_as(
        ToolId::host(READ_RESULT),
        vec![READ_RESULT.to_owned()],
        "Reads on in a result that was too long to be shown at once.",
        move |input: ReadResult, _: ToolContext| {
            let piece = pages.read(&input);
            async move { piece }
        },
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(pages: &Pages, result: &str, offset: usize) -> Result<String, ToolError> {
        pages.read(&ReadResult {
            result: result.to_owned(),
            offset,
        })
    }

    // attack: B5
    #[test]
    fn a_long_result_is_read_to_its_end_piece_by_piece() {
        let pages = Pages::new(1000);
        let whole = "grüße ✓ ".repeat(1000);
        let cut = pages.cut(&whole).unwrap();
        let mut text = cut.content.split("\n[cut").next().unwrap().to_owned();
        assert_eq!(text.len(), cut.shown_bytes);
        while text.len() < whole.len() {
            let piece = read(&pages, &cut.result, text.len()).unwrap();
            assert!(piece.len() <= 1000, "{}", piece.len());
            text.push_str(piece.split("\n[cut").next().unwrap());
        }
        assert_eq!(text, whole);
    }

    #[test]
    fn a_result_that_fits_stays_whole() {
        assert!(Pages::new(1000).cut(&"x".repeat(1000)).is_none());
        assert!(Pages::new(1000).cut(&"x".repeat(1001)).is_some());
    }

    #[test]
    fn reading_past_the_end_or_in_nothing_is_answered() {
        let pages = Pages::new(300);
        pages.cut(&"x".repeat(400)).unwrap();
        assert!(
            read(&pages, "r1", 400)
                .unwrap_err()
                .to_string()
                .contains("ends at byte 400")
        );
        let error = read(&pages, "r9", 0).unwrap_err();
        assert!(error.report().suggestion.as_ref().unwrap().ends_with("r1"));
    }

    #[test]
    fn the_oldest_results_are_given_up_when_too_much_is_kept() {
        let pages = Pages::new(300);
        let large = "x".repeat(KEPT_BYTES_MAX / 2 - 1);
        for _ in 0..3 {
            pages.cut(&large).unwrap();
        }
        assert!(read(&pages, "r1", 0).is_err());
        assert!(read(&pages, "r2", 0).is_ok());
        pages.cut(&"x".repeat(KEPT_BYTES_MAX + 5)).unwrap();
        assert!(read(&pages, "r4", 0).is_ok(), "the newest is kept, if not whole");
    }
}
