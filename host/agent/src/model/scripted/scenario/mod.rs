//! Scenarios: scripts as TOML files that people write and read.

mod entry;

use std::fmt::Display;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use self::entry::File;
use super::{ScriptedModel, ScriptedTurn};
use crate::model::ModelError;

/// The longest scenario that is read, in bytes: a long conversation has some hundred lines.
const SCENARIO_BYTES_MAX: u64 = 1 << 20;

const SUGGESTION: &str = "a turn is `[[turn]]` with one of `answer`, `call`, `fail` and `silent`, and perhaps `expect`";

impl ScriptedModel {
    /// Reads a scenario.
    ///
    /// A turn has one of `answer`, `call` (with `say` beside it), `fail` and `silent`; what it may `expect` says
    /// [`Expectation`](super::Expectation), and how text refers to what was shown says [`ScriptedTurn`].
    ///
    /// ```
    /// use toolwit_agent::model::ScriptedModel;
    ///
    /// let model = ScriptedModel::parse(r#"
    ///     name = "average spend"
    ///     prompt = "What is John Smith's average spend?"
    ///
    ///     [[turn]]
    ///     expect.tools = "search_customer"
    ///     expect.no_tools = "customer_c123_get_average_spend"
    ///     say = "Let me look that customer up."
    ///     call = [{ tool = "search_customer", arguments = { name = "John Smith" } }]
    ///
    ///     [[turn]]
    ///     expect.tools = "customer_c123_get_average_spend"
    ///     expect.last_result = { tool = "search_customer", is_error = false, json = { "/id" = "c-123" } }
    ///     call = [{ tool = "customer_c123_get_average_spend" }]
    ///
    ///     [[turn]]
    ///     expect.results = [{ contains = "amount", lacks = ["error", "c-124"] }]
    ///     answer = "{{prompt}} It is {{result.amount}} a month."
    ///     finish = "stop"                                                # or "length", …
    ///     usage = { input_tokens = 900, output_tokens = 20 }             # in place of a count
    /// "#)?;
    /// assert_eq!(model.turns_left(), 3);
    ///
    /// let hostile = ScriptedModel::parse(r#"
    ///     [[turn]]
    ///     fail.unavailable = { status = 503, message = "overloaded" }    # or refused, malformed
    ///
    ///     [[turn]]
    ///     call = [
    ///       { tool = "search", arguments_text = '{"name": ', id = "x" }, # sent as it stands
    ///       { tool = "search", id = "x" },
    ///     ]
    ///
    ///     [[turn]]
    ///     silent = true                                                  # until cancelled
    /// "#)?;
    /// # assert_eq!(hostile.turns_left(), 3);
    /// # Ok::<(), toolwit_agent::model::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelError::Configuration`] with line and column: for text that is no TOML, a key that is not known, a turn that
    /// says two things at once or nothing, an expectation that could never fail.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        parse("the scenario", text)
    }

    /// Reads a scenario from a file; without a name of its own it has the file's.
    ///
    /// # Errors
    /// As [`ScriptedModel::parse`], and when the file cannot be read or has more than 1 MiB.
    pub async fn load(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref().to_owned();
        let shown = format!("the scenario `{}`", path.display());
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let read = tokio::task::spawn_blocking(move || read(&path)).await;
        let text = read
            .map_err(std::io::Error::other)
            .flatten()
            .map_err(|error| refused(&shown, format!("cannot be read: {error}")))?;
        let script = parse(&shown, &text)?;
        Ok(match name {
            Some(name) if script.name == Self::new().name => script.with_name(name),
            _ => script,
        })
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let mut file = std::fs::File::open(path)?.take(SCENARIO_BYTES_MAX + 1);
    file.read_to_string(&mut text)?;
    match text.len() as u64 > SCENARIO_BYTES_MAX {
        true => Err(std::io::Error::other(format!(
            "it has more than {SCENARIO_BYTES_MAX} bytes"
        ))),
        false => Ok(text),
    }
}

fn parse(what: &str, text: &str) -> Result<ScriptedModel, ModelError> {
    let file: File = toml::from_str(text).map_err(|error| at(what, text, error.span(), error.message()))?;
    if file.turn.is_empty() {
        return Err(refused(what, "has no `[[turn]]`"));
    }
    let mut script = ScriptedModel::new();
    script.name = file.name.unwrap_or(script.name);
    script.prompt = file.prompt;
    for entry in file.turn {
        let span = entry.span();
        let turn = ScriptedTurn::try_from(entry.into_inner()).map_err(|why| at(what, text, Some(span.clone()), why))?;
        if let Some(flaw) = turn.flaw() {
            return Err(at(what, text, Some(span), flaw));
        }
        script.turns.push(turn);
    }
    Ok(script)
}

fn at(what: &str, text: &str, span: Option<Range<usize>>, why: impl Display) -> ModelError {
    let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    refused(what, format!("is wrong at line {line}, column {column}: {why}"))
}

fn refused(what: &str, why: impl Display) -> ModelError {
    ModelError::Configuration {
        message: format!("{what} {why}"),
        suggestion: SUGGESTION.to_owned(),
    }
}

#[cfg(test)]
mod tests;
