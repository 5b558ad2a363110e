//! Styles for the Markdown of a model, while it arrives.

use anstyle::Style;
use unicode_width::UnicodeWidthChar;

use crate::output::page::{FAINT, NAME, TITLE};
use toolwit::tool::text::is_printable;

/// Maximum length of a word that is held back until it is complete, in bytes.
const WORD_BYTES_MAX: usize = 200;

/// Columns and indentation of the text on a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) columns: usize,
    pub(crate) indent: usize,
}

/// A styler for a Markdown text that arrives in pieces. Headings, code and bold text have their own styles. The
/// markers, such as `#` and `**`, are printed too.
///
/// With a layout, the text is wrapped and each line is indented, so that no line of a model looks like a line of the host.
/// Control and invisible characters are removed.
#[derive(Debug, Default)]
pub(crate) struct MarkdownStyler {
    layout: Option<Layout>,
    /// The style of text that is not a heading, code or bold.
    base_style: Style,
    /// The word that has not ended yet.
    word: String,
    /// The width of the current output line so far, with its indentation, in columns.
    column: usize,
    /// Whether the current line of the Markdown text, which can be wrapped into several output lines, has a word.
    has_words: bool,
    /// Whether the text is inside a fenced code block.
    is_fenced: bool,
    /// Whether the current line of the Markdown text begins or ends a fenced code block.
    is_fence_line: bool,
    is_heading: bool,
    is_bold: bool,
    is_inline_code: bool,
}

impl MarkdownStyler {
    /// Creates a styler for a new text. Without a layout, lines are neither wrapped nor indented.
    pub(crate) fn new(layout: Option<Layout>, base_style: Style) -> Self {
        Self {
            layout,
            base_style,
            ..Self::default()
        }
    }

    /// Adds a piece, and returns what can be printed now. An incomplete word is held back.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut out = String::new();
        for c in piece.chars() {
            match c {
                '\n' => {
                    self.write_word(&mut out);
                    self.end_line(&mut out);
                }
                // Some control characters are whitespace, such as carriage return. They are not printable, and are
                // removed.
                c if c.is_whitespace() && is_printable(c) => {
                    self.write_word(&mut out);
                    self.write_space(&mut out, c);
                }
                c if is_printable(c) => {
                    self.word.push(c);
                    if self.word.len() >= WORD_BYTES_MAX {
                        self.write_word(&mut out);
                    }
                }
                _ => {}
            }
        }
        out
    }

    /// Ends the text. Returns the word that was held back, and a line break if the last line has none.
    pub(crate) fn finish(mut self) -> String {
        let mut out = String::new();
        self.write_word(&mut out);
        if self.column > 0 {
            out.push('\n');
        }
        out
    }

    fn end_line(&mut self, out: &mut String) {
        out.push('\n');
        self.column = 0;
        self.has_words = false;
        self.is_fence_line = false;
        self.is_heading = false;
        self.is_bold = false;
        self.is_inline_code = false;
    }

    fn write_space(&mut self, out: &mut String, c: char) {
        match self.layout {
            None => {
                // Other whitespace, such as a no-break space, becomes a space.
                out.push(if c == '\t' { c } else { ' ' });
                self.column += 1;
            }
            Some(layout) => {
                self.indent(out);
                if self.column < layout.columns {
                    out.push(' ');
                    self.column += 1;
                }
            }
        }
    }

    /// Indents the line, if it has not begun.
    fn indent(&mut self, out: &mut String) {
        if let (Some(layout), 0) = (self.layout, self.column) {
            out.extend(std::iter::repeat_n(' ', layout.indent));
            self.column = layout.indent;
        }
    }

    fn write_word(&mut self, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        if !self.has_words {
            self.begin_block(&word);
        }
        self.has_words = true;
        let width: usize = word.chars().map(|c| c.width().unwrap_or_default()).sum();
        if self
            .layout
            .is_some_and(|layout| self.column > layout.indent && self.column + width > layout.columns)
        {
            self.break_line(out);
        }
        self.indent(out);
        let mut characters = word.chars().peekable();
        while let Some(c) = characters.next() {
            let is_literal = self.is_fenced || self.is_fence_line;
            let is_code_marker = c == '`' && !is_literal;
            let is_bold_marker = c == '*' && characters.peek() == Some(&'*') && !is_literal && !self.is_inline_code;
            // Both backticks have the style of code. The closing `**` is bold, the opening `**` is not.
            let style = if is_code_marker { NAME } else { self.style() };
            self.write_char(out, style, c);
            if is_bold_marker && let Some(second) = characters.next() {
                self.write_char(out, style, second);
                self.is_bold = !self.is_bold;
            }
            self.is_inline_code ^= is_code_marker;
        }
    }

    /// Recognises a code fence or a heading by the first word of a line of the Markdown text.
    fn begin_block(&mut self, word: &str) {
        if word.starts_with("```") {
            self.is_fenced = !self.is_fenced;
            self.is_fence_line = true;
        } else if !self.is_fenced {
            self.is_heading = word.len() <= 6 && word.chars().all(|c| c == '#');
        }
    }

    fn style(&self) -> Style {
        if self.is_fence_line {
            FAINT
        } else if self.is_fenced || self.is_inline_code {
            NAME
        } else if self.is_heading || self.is_bold {
            TITLE
        } else {
            self.base_style
        }
    }

    fn write_char(&mut self, out: &mut String, style: Style, c: char) {
        let width = c.width().unwrap_or_default();
        if self
            .layout
            .is_some_and(|layout| self.column + width > layout.columns && self.column > layout.indent)
        {
            self.break_line(out);
            self.indent(out);
        }
        if style == Style::new() {
            out.push(c);
        } else {
            out.push_str(&format!("{style}{c}{style:#}"));
        }
        // A character without width counts as one column at the start of a line. Otherwise, `indent` would run again.
        self.column += width.max(usize::from(self.column == 0));
    }

    fn break_line(&mut self, out: &mut String) {
        out.push('\n');
        self.column = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_styles(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn style_pieces(layout: Option<Layout>, pieces: &[&str]) -> String {
        let mut styler = MarkdownStyler::new(layout, Style::new());
        let mut out: String = pieces.iter().map(|piece| styler.push(piece)).collect();
        out.push_str(&styler.finish());
        out
    }

    #[test]
    fn styles_do_not_change_the_text() {
        let text = "# Title\n\nA **bold** word, `code` and\n```rust\nlet a = **b;\n```\n- item\tend";
        let styled = style_pieces(None, &[text]);
        assert_eq!(without_styles(&styled), format!("{text}\n"));
        let pieces: Vec<String> = text.chars().map(String::from).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        assert_eq!(style_pieces(None, &pieces), styled);
        assert!(styled.contains(&format!("{TITLE}b{TITLE:#}")) && styled.contains(&format!("{NAME}c{NAME:#}")));
    }

    #[test]
    fn complete_words_are_printed_at_once() {
        let mut styler = MarkdownStyler::new(None, Style::new());
        assert_eq!(styler.push("Hello wor"), "Hello ");
        assert_eq!(styler.push("ld.\nA"), "world.\n");
        assert_eq!(styler.finish(), "A\n");
    }

    // attack: J9
    #[test]
    fn text_of_a_model_has_no_control_characters_in_a_pipe() {
        let hostile = "answer\rerror: forged\u{b}a\u{c}b\u{85}c\u{2028}d\u{2029}e\u{3000}f\tg\n";
        let out = without_styles(&style_pieces(None, &[hostile]));
        assert_eq!(out, "answererror: forgedabcde f\tg\n");
    }

    // attack: C21, J3
    #[test]
    fn text_of_a_model_cannot_begin_a_line_or_control_the_terminal() {
        let layout = Layout { columns: 20, indent: 2 };
        let padded = format!("{} error: fake", "x".repeat(19));
        let hostile = [
            "\x1b[2Jclean\u{202e}\r\nerror: fake\n",
            &padded,
            &"é".repeat(500),
            "\u{2028}host",
        ];
        let out = without_styles(&style_pieces(Some(layout), &hostile));
        assert!(!out.contains(['\x1b', '\u{202e}', '\r', '\u{2028}']), "{out}");
        for line in out.lines() {
            assert!(line.is_empty() || line.starts_with("  "), "{line:?}");
            assert!(line.chars().count() <= 20, "{line:?}");
        }
    }
}
