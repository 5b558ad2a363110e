//! Prints data to standard output and diagnostics to standard error.

use std::error::Error as _;
use std::fmt::Display;
use std::io::{self, Write};
use std::time::Duration;

use anstyle::Style;
use serde::Serialize;
use serde_json::{Value, json};
use terminal_size::{Height, Width, terminal_size_of};

use crate::failure::Failure;
use crate::hint::{definition_of_exceeded_limit, denied_access_hint, with_fixing_hint};
use crate::output::page::{BAD, FAINT, GOOD, Page, WARN};
use crate::output::wrap::wrap;
use toolwit::limits::{Amount, Limit};
use toolwit::tool::text::{is_printable, printable};
use toolwit::tool::{DeniedAccess, ExceededLimit};
use toolwit::{Error, ErrorKind, Phase};

/// The format of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text for people.
    Human,
    /// One JSON document.
    Json,
}

/// The verbosity of the diagnostics on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Errors only, with their hints.
    Quiet,
    /// Errors, warnings, hints and progress.
    Normal,
    /// Also resource usage, guest output and the library's log.
    Verbose,
    /// Also the library's debug log.
    Debug,
}

/// Prints the output of all commands. By default, colours are used on terminals only. `CLICOLOR_FORCE` in the environment
/// enables them for pipes and files too, and `NO_COLOR` disables them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    format: Format,
    verbosity: Verbosity,
}

impl Printer {
    pub(crate) fn new(format: Format, verbosity: Verbosity) -> Self {
        Self { format, verbosity }
    }

    pub(crate) fn format(self) -> Format {
        self.format
    }

    pub(crate) fn verbosity(self) -> Verbosity {
        self.verbosity
    }

    /// Prints a page for people to standard output.
    pub(crate) fn print_page(self, page: &Page) -> Result<(), Failure> {
        write_stdout(&for_terminal(page.to_string(), terminal_size_of(io::stdout())))
    }

    /// Prints the text of a tool or a model, which is the result of the command. A pipe or a file receives it without
    /// control and invisible characters. On a terminal, its lines are indented as well, so that none looks like a line
    /// of the host.
    pub(crate) fn untrusted_text(self, text: &str) -> Result<(), Failure> {
        let terminal = terminal_size_of(io::stdout());
        if terminal.is_none() {
            return write_stdout(&(printable(text) + "\n"));
        }
        let mut page = Page::new();
        page.block(2, Style::new(), text);
        write_stdout(&for_terminal(page.to_string(), terminal))
    }

    /// Prints the value that a tool returned, as JSON on several lines, to standard output.
    pub(crate) fn value(self, value: &Value) -> Result<(), Failure> {
        let text = escape_controls(&format!("{value:#}\n"));
        write_stdout(&for_terminal(text, terminal_size_of(io::stdout())))
    }

    /// Prints text for programs to standard output, unchanged.
    pub(crate) fn raw_text(self, text: &str) -> Result<(), Failure> {
        write_stdout(text)
    }

    /// Prints a JSON document to standard output, on one line.
    pub(crate) fn document(self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(document).map_err(|error| {
            let message = "the output cannot be serialised as JSON";
            Error::new(ErrorKind::Internal, Phase::Execute, message).with_source(error)
        })?;
        write_stdout(&(escape_controls(&text) + "\n"))
    }

    /// Prints a page to standard error, unless the verbosity is quiet.
    pub(crate) fn message(self, page: &Page) {
        if self.verbosity >= Verbosity::Normal {
            write_stderr(page);
        }
    }

    /// Prints a page to standard error, if the verbosity is at least verbose.
    pub(crate) fn detail(self, page: &Page) {
        if self.verbosity >= Verbosity::Verbose {
            write_stderr(page);
        }
    }

    /// Prints a `warning:` line.
    pub(crate) fn warn(self, warning: impl Display) {
        let mut page = Page::new();
        page.styled(WARN, "warning:").text(" ").text(warning).end();
        self.message(&page);
    }

    /// Prints a `hint:` line.
    pub(crate) fn hint(self, hint: impl Display) {
        let mut page = Page::new();
        page.styled(GOOD, "hint:").text(" ").text(hint).end();
        self.message(&page);
    }

    /// Prints a `denied:` line for each access that the host denied to a plugin, with a hint that shows how to allow the
    /// access.
    pub(crate) fn print_denied_accesses(self, denied: &[DeniedAccess]) {
        let mut page = Page::new();
        for access in denied {
            let line = format!("{}: {}: {}", access.plugin, access.access, access.reason);
            page.styled(WARN, "denied:").text(" ").text(line).end();
            page.styled(GOOD, "hint:")
                .text(" ")
                .text(denied_access_hint(access))
                .end();
        }
        self.message(&page);
    }

    /// Reports the error that ended the command: as text on standard error, or as the JSON document on standard output.
    pub(crate) fn report_error(self, error: &Error) -> Result<(), Failure> {
        if self.format == Format::Json {
            return self.document(&json!({ "ok": false, "error": with_fixing_hint(error).as_ref() }));
        }
        self.print_error(error);
        Ok(())
    }

    /// Prints an error to standard error: its message, its limit, its hint, and if verbose also its causes.
    pub(crate) fn print_error(self, error: &Error) {
        let error = with_fixing_hint(error);
        let error = error.as_ref();
        let mut page = Page::new();
        page.styled(BAD, "error:").text(" ").text(error).end();
        if let Some(ExceededLimit { limit, max, used, .. }) = &error.limit {
            let definition = definition_of_exceeded_limit(error);
            let option = definition
                .as_ref()
                .and_then(Limit::flag)
                .map(|option| format!(" (`{option}`)"));
            let option = option.unwrap_or_default();
            let [max, used] = [*max, *used].map(|amount| with_unit(amount, definition.as_ref()));
            page.styled(
                FAINT,
                format_args!("limit: {limit}{option} is {max}, used or requested: {used}"),
            )
            .end();
        }
        if self.verbosity >= Verbosity::Verbose {
            let mut previous = error.to_string();
            let mut source = error.source();
            while let Some(cause) = source {
                let text = cause.to_string();
                if text != previous {
                    page.styled(FAINT, format_args!("cause: {text}")).end();
                }
                previous = text;
                source = cause.source();
            }
        }
        if let Some(suggestion) = &error.suggestion {
            page.styled(GOOD, "hint:").text(" ").text(suggestion).end();
        }
        write_stderr(&page);
    }
}

/// Returns an amount with the unit of a limit. Without a limit, the amount is a count.
fn with_unit(amount: u64, limit: Option<&Limit>) -> Amount {
    match limit.map(|limit| limit.default) {
        Some(Amount::Bytes(_)) => Amount::Bytes(amount),
        Some(Amount::Time(_)) => Amount::Time(Duration::from_millis(amount)),
        _ => Amount::Count(amount),
    }
}

/// Writes text to standard output. [`Printer`] describes when colours are used.
pub(crate) fn write_stdout(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::AutoStream::auto(io::stdout().lock());
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(Failure::Output)
}

/// Writes a page to standard error. Ignores errors, because there is no other output to report them.
pub(crate) fn write_stderr(page: &Page) {
    write_stderr_text(&for_terminal(page.to_string(), terminal_size_of(io::stderr())));
}

/// Writes styled and wrapped text to standard error. Ignores errors, as [`write_stderr`] does.
pub(crate) fn write_stderr_text(text: &str) {
    let mut stderr = anstream::AutoStream::auto(io::stderr().lock());
    let _ = stderr.write_all(text.as_bytes());
}

/// Wraps the lines of a text between words, if the output is a terminal.
fn for_terminal(text: String, terminal: Option<(Width, Height)>) -> String {
    match terminal {
        Some((Width(columns), _)) => wrap(&text, columns.into()),
        None => text,
    }
}

/// Escapes the control and invisible characters in a JSON text, because a terminal may act on them. Line feeds and tabs stay
/// unchanged: between values, they only format the text, and JSON escapes them in strings. JSON permits some of the escaped
/// characters in strings without an escape. Such a character has the same value as its escape sequence.
pub(crate) fn escape_controls(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if is_printable(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: C21, J3
    #[test]
    fn json_output_has_no_control_characters_and_the_same_value() {
        let value = json!({ "a\u{9b}31m": ["\x1b[2J", "\u{202e}", "é", "\u{7f}", "\u{200b}", "\u{e0041}"] });
        let text = escape_controls(&value.to_string());
        assert!(text.chars().all(is_printable), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
