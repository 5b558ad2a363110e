//! Styled text for people.

use std::fmt::{self, Display, Write};

use anstyle::{AnsiColor, Style};

use toolwit::tool::text::is_printable;

/// Titles of sections, such as the name of a plugin above its tools.
pub(crate) const TITLE: Style = Style::new().bold();
/// Names in a section, such as those of tools.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default().bold();
/// Less important text.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// Success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// Errors.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Warnings.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();

/// Maximum length of one added text, in characters. The longest tool description fits.
const TEXT_CHARS_MAX: usize = 8_192;

/// Indentation of the second and later lines of an added text, in addition to that of the first line, in columns.
const CONTINUATION_COLUMNS: usize = 4;

/// Text under construction.
///
/// An added text may come from a plugin, a model or a file. The page removes its control and invisible characters, limits
/// its length unless it is a [`block`](Self::block), and indents its later lines more than its first line. So the text
/// cannot control the terminal or forge a line of the host. The page adds colours itself. The printer removes them if the
/// output is not a terminal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page(String);

impl Page {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds text.
    pub(crate) fn text(&mut self, text: impl Display) -> &mut Self {
        let text = self.sanitize(&text.to_string(), TEXT_CHARS_MAX);
        self.0.push_str(&text);
        self
    }

    /// Adds text in a style.
    pub(crate) fn styled(&mut self, style: Style, text: impl Display) -> &mut Self {
        let text = self.sanitize(&text.to_string(), TEXT_CHARS_MAX);
        self.push_styled(style, &text)
    }

    /// Adds a sanitized text in a style.
    fn push_styled(&mut self, style: Style, sanitized_text: &str) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{style}{sanitized_text}{style:#}");
        self
    }

    /// Returns a text that can safely be added to the current line: with printable characters only, later lines indented,
    /// and at most `chars_max` characters.
    fn sanitize(&self, text: &str, chars_max: usize) -> String {
        let line = self.0.rsplit('\n').next().unwrap_or_default();
        let indent = line.len() - line.trim_start_matches(' ').len() + CONTINUATION_COLUMNS;
        let mut sanitized = String::with_capacity(text.len().min(chars_max));
        let printable = text.trim_end_matches(['\r', '\n']).chars().filter(|c| is_printable(*c));
        for (count, c) in printable.enumerate() {
            match c {
                _ if count == chars_max => {
                    sanitized.push('…');
                    break;
                }
                '\n' => {
                    sanitized.push('\n');
                    sanitized.extend(std::iter::repeat_n(' ', indent));
                }
                // The width of a tab depends on its position, and a line cannot be wrapped at an unusual space.
                c if c.is_whitespace() => sanitized.push(' '),
                c => sanitized.push(c),
            }
        }
        sanitized
    }

    /// Ends the line.
    pub(crate) fn end(&mut self) -> &mut Self {
        self.0.push('\n');
        self
    }

    /// Adds the lines of a text, each indented. Their number and length are not limited.
    pub(crate) fn block(&mut self, indent: usize, style: Style, text: &str) -> &mut Self {
        for line in text.lines() {
            if !line.trim().is_empty() {
                self.spaces(indent);
                let line = self.sanitize(line.trim_end(), usize::MAX);
                self.push_styled(style, &line);
            }
            self.end();
        }
        self
    }

    /// Adds a title line, after an empty line unless the page is empty.
    pub(crate) fn title(&mut self, title: &str) -> &mut Self {
        self.gap().styled(TITLE, title).end()
    }

    /// Adds an empty line, unless the page is empty.
    pub(crate) fn gap(&mut self) -> &mut Self {
        if !self.0.is_empty() {
            self.end();
        }
        self
    }

    /// Adds another page.
    pub(crate) fn append(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    /// Returns whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds spaces, at the start of a line or between two columns.
    pub(crate) fn spaces(&mut self, columns: usize) -> &mut Self {
        self.0.extend(std::iter::repeat_n(' ', columns));
        self
    }
}

impl Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns a text in one line, with an escape such as `\u{200b}` in place of each control or invisible character and each
/// unusual space. Use it for a text that a person accepts, because a [`Page`] omits these characters: two different paths
/// could look the same.
pub(crate) fn visible(text: impl Display) -> String {
    let mut visible = String::new();
    for c in text.to_string().chars() {
        match c {
            '\r' | '\n' => visible.push('⏎'),
            ' ' => visible.push(c),
            c if is_printable(c) && !c.is_whitespace() => visible.push(c),
            c => visible.extend(c.escape_unicode()),
        }
    }
    visible
}

/// Returns the first sentence of a description, or its first line if that is shorter.
pub(crate) fn first_sentence(text: &str) -> &str {
    let line = text.trim_start().lines().next().unwrap_or_default().trim_end();
    line.find(". ").map_or(line, |end| &line[..=end])
}

/// Formats a number of bytes with a binary unit. KiB are rounded up; MiB and GiB are cut after one decimal.
pub(crate) fn size(bytes: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    match bytes {
        0..KIB => format!("{bytes} bytes"),
        KIB..MIB => format!("{} KiB", bytes.div_ceil(KIB)),
        MIB..GIB => format!("{}.{} MiB", bytes / MIB, bytes % MIB * 10 / MIB),
        _ => format!("{}.{} GiB", bytes / GIB, bytes % GIB * 10 / GIB),
    }
}

/// Formats a count with a noun in singular or plural.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // attack: C21, J3
    #[test]
    fn added_text_cannot_control_the_terminal() {
        let mut page = Page::new();
        page.text("\x1b[2Jclean\x07\u{9b}31m")
            .styled(NAME, "a\x1b]0;title\x07b\u{202e}c\u{200b}\u{e0041}d");
        let stripped = anstream::adapter::strip_str(&page.to_string()).to_string();
        assert_eq!(stripped, "[2Jclean31ma]0;titlebcd");
    }

    #[test]
    fn added_text_does_not_begin_a_line() {
        let mut page = Page::new();
        page.text("error: ").text("oops\r\nok  \u{2028}all\tis well\n").end();
        page.spaces(2).styled(FAINT, "a\nhint: b").end();
        let stripped = anstream::adapter::strip_str(&page.to_string()).to_string();
        assert_eq!(stripped, "error: oops\n    ok  all is well\n  a\n      hint: b\n");
    }

    // attack: J4
    #[test]
    fn added_text_is_limited() {
        let mut page = Page::new();
        page.text("é".repeat(200_000)).end();
        assert_eq!(page.to_string().chars().count(), TEXT_CHARS_MAX + 2);
        assert!(page.to_string().ends_with("é…\n"));
    }

    // attack: C21
    #[test]
    fn a_text_that_a_person_accepts_hides_no_character() {
        assert_eq!(visible("./ser\u{200b}ver a\u{a0}b"), "./ser\\u{200b}ver a\\u{a0}b");
        assert_eq!(visible("a\nb\tc\u{202e}\x1b"), "a⏎b\\u{9}c\\u{202e}\\u{1b}");
        assert_eq!(visible("Zürich 東京"), "Zürich 東京");
    }

    #[test]
    fn first_sentence_ends_at_its_full_stop() {
        assert_eq!(first_sentence("Finds 1.5 things. Slowly.\nMore."), "Finds 1.5 things.");
        assert_eq!(first_sentence("\n  No stop\nmore"), "No stop");
        assert_eq!(first_sentence(""), "");
    }

    #[test]
    fn sizes_and_counts_have_units() {
        let sizes = [999, 1_024, 183_190, 1_114_112, 2 << 30].map(size);
        assert_eq!(sizes, ["999 bytes", "1 KiB", "179 KiB", "1.0 MiB", "2.0 GiB"]);
        assert_eq!(
            [0, 1, 2].map(|count| counted(count, "tool")),
            ["0 tools", "1 tool", "2 tools"]
        );
    }
}
