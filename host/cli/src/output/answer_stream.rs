//! The text of a model, printed as it arrives.

use std::io;

use anstyle::Style;
use terminal_size::{Width, terminal_size_of};

use crate::output::markdown::{Layout, MarkdownStyler};
use crate::output::page::FAINT;
use crate::output::printer::{Printer, Verbosity, write_stderr_text, write_stdout};

/// Indentation of the text on a terminal, in columns.
const INDENT: usize = 2;

/// Minimum number of columns to which text is wrapped.
const COLUMNS_MIN: usize = 20;

/// The kind of a streamed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// An answer, which goes to standard output.
    Answer,
    /// Reasoning, which goes to standard error.
    Reasoning,
}

/// Prints the text of a model as it arrives.
pub(crate) struct AnswerStream {
    printer: Printer,
    /// The text that has not ended yet, with its kind.
    open_text: Option<(TextKind, MarkdownStyler)>,
}

impl AnswerStream {
    pub(crate) fn new(printer: Printer) -> Self {
        Self {
            printer,
            open_text: None,
        }
    }

    /// Prints a part of a text. If a text of the other kind is open, ends it first. Reasoning is not printed if the
    /// verbosity is quiet.
    pub(crate) fn print(&mut self, kind: TextKind, text: &str) {
        if kind == TextKind::Reasoning && self.printer.verbosity() == Verbosity::Quiet {
            return;
        }
        if self.open_text.as_ref().is_some_and(|(open_kind, _)| *open_kind != kind) {
            self.close();
        }
        let (_, styler) = self.open_text.get_or_insert_with(|| (kind, new_styler(kind)));
        write_text(kind, &styler.push(text));
    }

    /// Ends the open text, if there is one.
    pub(crate) fn close(&mut self) {
        if let Some((kind, styler)) = self.open_text.take() {
            write_text(kind, &styler.finish());
        }
    }
}

fn new_styler(kind: TextKind) -> MarkdownStyler {
    let (terminal, base_style) = match kind {
        TextKind::Answer => (terminal_size_of(io::stdout()), Style::new()),
        TextKind::Reasoning => (terminal_size_of(io::stderr()), FAINT),
    };
    let layout = terminal.map(|(Width(columns), _)| Layout {
        columns: usize::from(columns).max(COLUMNS_MIN),
        indent: INDENT,
    });
    MarkdownStyler::new(layout, base_style)
}

/// Writes a styled text. Ignores errors, so that a closed output does not end the run.
fn write_text(kind: TextKind, text: &str) {
    match kind {
        TextKind::Answer => {
            let _ = write_stdout(text);
        }
        TextKind::Reasoning => write_stderr_text(text),
    }
}
