//! Extracts the text of an answer from JSON while the JSON arrives.

use super::json_reply::ANSWER;

/// Decodes the text of a response that starts with `{"answer": "`. It returns no text for any other response.
#[derive(Debug, Default)]
pub(super) struct AnswerStream {
    state: AnswerState,
    /// The start of the response without white space, or an incomplete escape sequence.
    pending: String,
}

#[derive(Debug, Default, PartialEq)]
enum AnswerState {
    /// The text has not started.
    #[default]
    Start,
    Text,
    /// The text has ended, or the response is not an answer.
    End,
}

impl AnswerStream {
    /// Adds a piece of the response, and returns the text of the answer that it contains.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let mut text = String::new();
        for character in piece.chars() {
            match self.state {
                AnswerState::Start => self.read_start(character),
                AnswerState::Text => self.read_text(character, &mut text),
                AnswerState::End => break,
            }
        }
        text
    }

    fn read_start(&mut self, character: char) {
        if character.is_whitespace() {
            return;
        }
        self.pending.push(character);
        let expected_start = format!("{{\"{ANSWER}\":\"");
        if self.pending == expected_start {
            self.state = AnswerState::Text;
            self.pending.clear();
        } else if !expected_start.starts_with(&self.pending) {
            self.state = AnswerState::End;
        }
    }

    fn read_text(&mut self, character: char, text: &mut String) {
        if self.pending.is_empty() {
            match character {
                '"' => self.state = AnswerState::End,
                '\\' => self.pending.push(character),
                other => text.push(other),
            }
            return;
        }
        self.pending.push(character);
        if is_incomplete(&self.pending) {
            return;
        }
        let decoded: Result<String, _> = serde_json::from_str(&format!("\"{}\"", self.pending));
        match decoded {
            Ok(decoded) => text.push_str(&decoded),
            // An invalid escape sequence makes the complete response invalid JSON.
            Err(_) => self.state = AnswerState::End,
        }
        self.pending.clear();
    }
}

/// Returns whether an escape sequence is incomplete. Four digits follow `\u`, and the second half of a surrogate pair follows
/// the first half.
fn is_incomplete(escape: &str) -> bool {
    let Some(digits) = escape.strip_prefix("\\u") else {
        return escape.len() < 2;
    };
    let is_first_half = digits.get(..2).is_some_and(|start| {
        let start = start.to_ascii_lowercase();
        ("d8".."dc").contains(&start.as_str())
    });
    digits.len() < if is_first_half { 10 } else { 4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streamed(text: &str) -> String {
        let mut stream = AnswerStream::default();
        let mut buffer = [0; 4];
        text.chars().map(|c| stream.push(c.encode_utf8(&mut buffer))).collect()
    }

    #[test]
    fn the_answer_is_decoded_however_it_is_cut() {
        let json = r#" { "answer" : "é \"x\" \\ \n\u00e9\ud83d\ude00!", "tool_calls": [] }"#;
        let expected = "é \"x\" \\ \né😀!";
        assert_eq!(streamed(json), expected);
        assert_eq!(AnswerStream::default().push(json), expected);
        let mut stream = AnswerStream::default();
        assert_eq!(
            [stream.push(r#"{"answer":"a\"#), stream.push("n"), stream.push("b")],
            ["a", "\n", "b"]
        );
    }

    #[test]
    fn other_responses_are_not_streamed() {
        for other in [
            r#"{"tool_calls": ["answer"]}"#,
            "hi",
            r#"{"answers":"x"}"#,
            r#"{"answer":{"a":"b"}}"#,
        ] {
            assert_eq!(streamed(other), "", "{other}");
        }
        assert_eq!(streamed(r#"{"answer":"a\xb"}"#), "a", "invalid JSON ends the stream");
    }
}
