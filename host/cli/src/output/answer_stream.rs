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
pub(crate) enum Piece {
    /// A part of an answer, which goes to standard output.
    Answer,
    /// A part of the reasoning, which goes to standard error.
    Reasoning,
}

/// Prints the text of a model as it arrives.
pub(crate) struct AnswerStream {
    printer: Printer,
    open: Option<(Piece, Markdown)>,
}

impl AnswerStream {
    pub(crate) fn new(printer: Printer) -> Self {
        Self { printer, open: None }
    }

    /// Prints a part of a text. A text of another kind begins on a new line.
    pub(crate) fn print(&mut self, kind: Piece, text: &str) {
        if kind == Piece::Reasoning && self.printer.verbosity() == Verbosity::Quiet {
            return;
        }
        if self.open.as_ref().is_some_and(|(open, _)| *open != kind) {
            self.close();
        }
        let (_, markdown) = self.open.get_or_insert_with(|| (kind, begin(kind)));
        write(kind, &markdown.push(text));
    }

    /// Ends the text.
    pub(crate) fn close(&mut self) {
        if let Some((kind, markdown)) = self.open.take() {
            write(kind, &markdown.finish());
        }
    }
}

fn begin(kind: Piece) -> Markdown {
    let (terminal, base) = match kind {
        Piece::Answer => (terminal_size_of(io::stdout()), Style::new()),
        Piece::Reasoning => (terminal_size_of(io::stderr()), FAINT),
    };
    let layout = terminal.map(|(Width(columns), _)| Layout {
        columns: usize::from(columns).max(COLUMNS_MIN),
        indent: INDENT,
    });
    Markdown::new(layout, base)
}

/// Writes a styled text. A closed output does not end the run.
fn write(kind: Piece, text: &str) {
    match kind {
        Piece::Answer => {
            let _ = write_stdout(text);
        }
        Piece::Reasoning => write_stderr_text(text),
    }
}
