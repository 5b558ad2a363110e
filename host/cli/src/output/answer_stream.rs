//! The text of a model, printed as it arrives.

use std::io;

use anstyle::Style;
use terminal_size::{Width, terminal_size_of};

use crate::output::markdown::{Layout, Markdown};
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
    /// The text that has not ended yet.
    open: Option<(TextKind, Markdown)>,
}

impl AnswerStream {
    pub(crate) fn new(printer: Printer) -> Self {
        Self { printer, open: None }
    }

    /// Prints a part of a text. A text of another kind begins on a new line. Reasoning is not printed if the verbosity
    /// is quiet.
    pub(crate) fn print(&mut self, kind: TextKind, text: &str) {
        if kind == TextKind::Reasoning && self.printer.verbosity() == Verbosity::Quiet {
            return;
        }
        if self.open.as_ref().is_some_and(|(open, _)| *open != kind) {
            self.close();
        }
        let (_, markdown) = self.open.get_or_insert_with(|| (kind, new_markdown(kind)));
        write_text(kind, &markdown.push(text));
    }

    /// Ends the text.
    pub(crate) fn close(&mut self) {
        if let Some((kind, markdown)) = self.open.take() {
            write_text(kind, &markdown.finish());
        }
    }
}

fn new_markdown(kind: TextKind) -> Markdown {
    let (terminal, base) = match kind {
        TextKind::Answer => (terminal_size_of(io::stdout()), Style::new()),
        TextKind::Reasoning => (terminal_size_of(io::stderr()), FAINT),
    };
    let layout = terminal.map(|(Width(columns), _)| Layout {
        columns: usize::from(columns).max(COLUMNS_MIN),
        indent: INDENT,
    });
    Markdown::new(layout, base)
}

/// Writes a styled text. A closed output does not end the run.
fn write_text(kind: TextKind, text: &str) {
    match kind {
        TextKind::Answer => {
            let _ = write_stdout(text);
        }
        TextKind::Reasoning => write_stderr_text(text),
    }
}
