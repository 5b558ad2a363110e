//! The one way out: data to standard output, talk to standard error.

use std::error::Error as _;
use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;

use super::failure::Failure;
use super::grant::with_command;
use super::limits::flag_for;
use super::page::{BAD, FAINT, GOOD, Page, WARN};
use toolwit::tool::LimitUse;
use toolwit::{Error, ErrorKind, Phase};

/// What standard output holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Text for people.
    Human,
    /// One JSON document.
    Json,
}

/// How much is told on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Talk {
    /// Errors only.
    Quiet,
    /// What a person wants to know.
    Normal,
    /// What it cost, what the guest wrote, what the library logs.
    Verbose,
    /// What the library logs in detail.
    Debug,
}

/// Prints for all commands. Colours go to terminals only, and nowhere when `NO_COLOR` is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Printer {
    form: Form,
    talk: Talk,
}

impl Printer {
    pub(super) fn new(form: Form, talk: Talk) -> Self {
        Self { form, talk }
    }

    pub(super) fn form(self) -> Form {
        self.form
    }

    pub(super) fn talk(self) -> Talk {
        self.talk
    }

    /// Prints data for people.
    pub(super) fn data(self, page: &Page) -> Result<(), Failure> {
        write_data(&page.to_string())
    }

    /// Prints a JSON document on a line of its own.
    pub(super) fn document(self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(document).map_err(|error| {
            Error::new(
                ErrorKind::Internal,
                Phase::Execute,
                "the answer cannot be written as JSON",
            )
            .with_source(error)
        })?;
        write_data(&(harmless_json(&text) + "\n"))
    }

    /// Tells something on standard error, unless asked to be quiet.
    pub(super) fn say(self, page: &Page) {
        if self.talk >= Talk::Normal {
            write_talk(page);
        }
    }

    /// Tells details on standard error, when asked for them.
    pub(super) fn detail(self, page: &Page) {
        if self.talk >= Talk::Verbose {
            write_talk(page);
        }
    }

    /// Tells what does no harm yet.
    pub(super) fn warn(self, warning: impl Display) {
        let mut page = Page::new();
        page.styled(WARN, "warning:").text(" ").text(warning).end();
        self.say(&page);
    }

    /// Tells what to do next.
    pub(super) fn hint(self, hint: impl Display) {
        let mut page = Page::new();
        page.styled(GOOD, "hint:").text(" ").text(hint).end();
        self.say(&page);
    }

    /// Tells what went wrong: on standard error for people, as the one document for programs.
    pub(super) fn error(self, error: &Error) -> Result<(), Failure> {
        if self.form == Form::Json {
            return self.document(&json!({ "ok": false, "error": with_command(error).as_ref() }));
        }
        self.complain(error);
        Ok(())
    }

    /// Tells people what went wrong.
    pub(super) fn complain(self, error: &Error) {
        let error = with_command(error);
        let error = error.as_ref();
        let mut page = Page::new();
        page.styled(BAD, "error:").text(" ").quoted(error).end();
        if let Some(met) = &error.limit {
            let LimitUse { limit, max, used, .. } = met;
            let flag = flag_for(error).map(|flag| format!(" (`{flag}`)")).unwrap_or_default();
            page.styled(
                FAINT,
                format_args!("limit: {limit}{flag} is {max}, used or asked for: {used}"),
            )
            .end();
        }
        if self.talk >= Talk::Verbose {
            let mut source = error.source();
            while let Some(cause) = source {
                page.styled(FAINT, format_args!("cause: {cause}")).end();
                source = cause.source();
            }
        }
        if let Some(suggestion) = &error.suggestion {
            page.styled(GOOD, "hint:").text(" ").quoted(suggestion).end();
        }
        write_talk(&page);
    }
}

fn write_data(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::AutoStream::auto(io::stdout().lock());
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(Failure::Output)
}

/// Nobody can be told that standard error is gone.
fn write_talk(page: &Page) {
    let mut stderr = anstream::AutoStream::auto(io::stderr().lock());
    let _ = stderr.write_all(page.to_string().as_bytes());
}

/// Escapes what a terminal may obey and JSON allows as it is. Such characters stand in strings only, so that nothing is lost.
fn harmless_json(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                harmless.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            _ => harmless.push(c),
        }
    }
    harmless
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: C21
    #[test]
    fn json_holds_no_character_that_a_terminal_obeys_and_loses_none() {
        let value = json!({ "a\u{9b}31m": ["\x1b[2J", "\u{202e}", "é", "\u{7f}"] });
        let text = harmless_json(&value.to_string());
        assert!(!text.chars().any(char::is_control), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
