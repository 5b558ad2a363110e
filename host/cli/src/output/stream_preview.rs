//! The end of a text that a model is producing, on one line.

/// Maximum length of the preview, in characters. It fits on a line of a terminal with the name of the model and the
/// time.
const PREVIEW_CHARS_MAX: usize = 48;

/// The end of a streamed text.
#[derive(Debug, Default)]
pub(crate) struct StreamPreview {
    text: String,
}

impl StreamPreview {
    /// Adds a piece and returns the end of the text. Successive whitespace characters become one space.
    pub(crate) fn push(&mut self, piece: &str) -> &str {
        for character in piece.chars() {
            let character = if character.is_whitespace() { ' ' } else { character };
            if character != ' ' || !self.text.ends_with(' ') {
                self.text.push(character);
            }
        }
        if let Some((start, _)) = self.text.char_indices().rev().nth(PREVIEW_CHARS_MAX - 1) {
            self.text.drain(..start);
        }
        self.text.trim_start()
    }

    /// Removes the text.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preview_is_the_end_of_the_text_on_one_line() {
        let mut preview = StreamPreview::default();
        assert_eq!(preview.push("\n Hello\n\n"), "Hello ");
        assert_eq!(preview.push(" wörld"), "Hello wörld");
        assert_eq!(preview.push(&"é".repeat(500)), "é".repeat(PREVIEW_CHARS_MAX));
        preview.clear();
        assert_eq!(preview.push("x"), "x");
    }
}
