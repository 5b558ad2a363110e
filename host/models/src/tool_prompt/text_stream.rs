//! Extracts the text before the calls from a response while it arrives.

use super::call_text::{LineStart, LineState};

/// Extracts the text before the calls from a response that arrives in pieces. A line is held back as long as it may become a
/// call.
#[derive(Debug, Default)]
pub(super) struct TextStream {
    line_state: LineState,
    /// The current line, as far as it has arrived.
    line: String,
    /// The number of bytes of the current line that have been returned.
    returned_bytes: usize,
    /// Whether a call may have started. No further text is returned then.
    is_stopped: bool,
    /// Whether a line that is not blank has been returned.
    has_text: bool,
}

impl TextStream {
    /// Adds a piece of the response, and returns the text that is certainly not a call.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let mut text = String::new();
        for line_piece in piece.split_inclusive('\n') {
            if self.is_stopped {
                break;
            }
            self.line.push_str(line_piece);
            self.read_line(&mut text);
        }
        text
    }

    /// Reads the current line. Appends to `text` the part of the line that is certainly not a call.
    fn read_line(&mut self, text: &mut String) {
        let is_complete = self.line.ends_with('\n');
        let start = self.line_state.classify_start(&self.line);
        // A response that starts with `{` may be a call without marks.
        let may_be_object = !self.has_text && self.line.trim_start().starts_with('{');
        if start == LineStart::Call || may_be_object {
            self.is_stopped = true;
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

    fn push_each_character(text: &str) -> String {
        let mut stream = TextStream::default();
        let mut buffer = [0; 4];
        text.chars().map(|c| stream.push(c.encode_utf8(&mut buffer))).collect()
    }

    #[test]
    fn text_is_returned_up_to_the_first_call_for_any_cut_into_pieces() {
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
            let streamed_text = push_each_character(response);
            // White space at the end may be held back.
            assert_eq!(streamed_text.trim_end(), text.trim_end(), "{response}");
        }
    }
}
