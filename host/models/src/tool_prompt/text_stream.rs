//! Extracts the text before the calls from a response while it arrives.

use super::call_text::{LineStart, LineState};

/// Extracts the text before the calls from a response that arrives in pieces. A line that may still become a call is held
/// back.
#[derive(Debug, Default)]
pub(super) struct TextStream {
    line_state: LineState,
    /// The current line.
    line: String,
    /// The number of bytes of the current line that have been returned.
    returned_bytes: usize,
    /// Whether a call may have started: the rest of the response is held back.
    is_held: bool,
    /// Whether a line that is not blank has been returned.
    has_text: bool,
}

impl TextStream {
    /// Adds a piece of the response, and returns the text that is certainly not a call.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let mut text = String::new();
        for line_piece in piece.split_inclusive('\n') {
            if self.is_held {
                break;
            }
            self.line.push_str(line_piece);
            self.read_line(&mut text);
        }
        text
    }

    /// Reads the current line, as far as it has arrived, and appends what is certainly text.
    fn read_line(&mut self, text: &mut String) {
        let is_complete = self.line.ends_with('\n');
        let start = self.line_state.classify_start(&self.line);
        // A response that is an object may be a call without marks.
        let is_object = !self.has_text && self.line.trim_start().starts_with('{');
        if start == LineStart::Call || is_object {
            self.is_held = true;
            return;
        }
        if start == LineStart::Undecided && !is_complete {
            return;
        }
        text.push_str(&self.line[self.returned_bytes..]);
        self.returned_bytes = self.line.len();
        self.has_text |= !self.line.trim().is_empty();
        if is_complete {
            self.line_state.end_line(&self.line);
            self.line.clear();
            self.returned_bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streamed(text: &str) -> String {
        let mut stream = TextStream::default();
        let mut buffer = [0; 4];
        text.chars().map(|c| stream.push(c.encode_utf8(&mut buffer))).collect()
    }

    #[test]
    fn text_is_returned_up_to_the_first_call_however_it_is_cut() {
        let responses = [
            ("One < two.\n<b>Done", "One < two.\n<b>Done"),
            ("I look.\n\n  <tool_call>{}", "I look.\n\n"),
            ("```\n<tool_call>\n```\nx\n[TOOL_CALLS]", "```\n<tool_call>\n```\nx\n"),
            (" {\"name\": \"f\"}", ""),
            ("a\n{\"name\": \"f\"}", "a\n{\"name\": \"f\"}"),
            ("<tool", ""),
        ];
        for (response, text) in responses {
            assert_eq!(TextStream::default().push(response), text);
            let cut = streamed(response);
            // Only blank text may be held back at the end of a line.
            assert_eq!(cut.trim_end(), text.trim_end(), "{response}");
        }
    }
}
