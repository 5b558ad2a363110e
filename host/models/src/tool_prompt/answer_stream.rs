//! Extracts the text of an answer from JSON while the JSON arrives.

use super::json_reply::ANSWER_KEY;

/// Decodes the text of a response that starts with `{"answer": "`. Returns no text for any other response.
#[derive(Debug, Default)]
pub(super) struct AnswerStream {
    state: AnswerState,
    /// Before the text: the response so far, without white space. In the text: an incomplete escape sequence, or nothing.
    pending: String,
}

#[derive(Debug, Default, PartialEq)]
enum AnswerState {
    /// The text has not started.
    #[default]
    Start,
    /// The next character belongs to the text or ends it.
    Text,
    /// The text has ended, or the response is not an answer.
    End,
}

impl AnswerStream {
    /// Adds a piece of the response, and returns the text of the answer in this piece.
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
        let expected_start = format!("{{\"{ANSWER_KEY}\":\"");
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
                _ => text.push(character),
            }
            return;
        }
        self.pending.push(character);
        if is_incomplete_escape(&self.pending) {
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

/// Returns whether an escape sequence is incomplete.
///
/// Four hex digits follow `\u`. If they are the first half of a surrogate pair, another `\u` and four digits follow.
fn is_incomplete_escape(escape: &str) -> bool {
    let Some(after_u) = escape.strip_prefix("\\u") else {
        return escape.len() < 2;
    };
    let is_high_surrogate = after_u.get(..2).is_some_and(|start| {
        let start = start.to_ascii_lowercase();
        ("d8".."dc").contains(&start.as_str())
    });
    // Four digits, `\u` and four digits have 10 characters.
    after_u.len() < if is_high_surrogate { 10 } else { 4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push_each_character(text: &str) -> String {
        let mut stream = AnswerStream::default();
        let mut buffer = [0; 4];
        text.chars().map(|c| stream.push(c.encode_utf8(&mut buffer))).collect()
    }

    #[test]
    fn the_answer_is_decoded_for_any_cut_into_pieces() {
        let json = r#" { "answer" : "é \"x\" \\ \n\u00e9\ud83d\ude00!", "tool_calls": [] }"#;
        let expected = "é \"x\" \\ \né😀!";
        assert_eq!(push_each_character(json), expected);
        assert_eq!(AnswerStream::default().push(json), expected);
        let mut stream = AnswerStream::default();
        assert_eq!(
            [stream.push(r#"{"answer":"a\"#), stream.push("n"), stream.push("b")],
            ["a", "\n", "b"]
        );
    }

    #[test]
    fn other_responses_are_not_streamed() {
        for response in [
            r#"{"tool_calls": ["answer"]}"#,
            "hi",
            r#"{"answers":"x"}"#,
            r#"{"answer":{"a":"b"}}"#,
        ] {
            assert_eq!(push_each_character(response), "", "{response}");
        }
        assert_eq!(
            push_each_character(r#"{"answer":"a\xb"}"#),
            "a",
            "invalid JSON ends the stream"
        );
    }
}
