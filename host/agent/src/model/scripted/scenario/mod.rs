//! Scenarios: scripts in TOML files.

mod file_format;

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use self::file_format::ScenarioFile;
use super::{ScriptedModel, ScriptedTurn};
use crate::model::ModelError;
use toolwit_core::file::read_text_file;
use toolwit_core::limits::SCENARIO_BYTES_MAX;

/// The suggestion for a scenario that cannot be used.
const SUGGESTION: &str =
    "write each turn as `[[turn]]` with one of `answer`, `call`, `fail` and `silent`, and optionally `expect`";

impl ScriptedModel {
    /// Parses a scenario.
    ///
    /// A turn has one of `answer`, `call` (optionally with `say`), `fail` and `silent`. The keys of `expect` have the names
    /// of the methods of [`Expectation`](super::Expectation) and [`TextMatch`](super::TextMatch). The exception is
    /// `is_error`: `true` requires an error, and `false` requires a success. Texts can contain references such as
    /// `{{prompt}}`, which [`ScriptedTurn`] describes.
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
    ///     usage = { input_tokens = 900, output_tokens = 20 }             # by default estimated
    /// "#)?;
    /// assert_eq!(model.turns_left(), 3);
    ///
    /// let failing = ScriptedModel::parse(r#"
    ///     [[turn]]
    ///     fail.unavailable = { status = 503, message = "overloaded" }    # or refused, malformed
    ///
    ///     [[turn]]
    ///     call = [
    ///       { tool = "search", arguments_text = '{"name": ', id = "x" }, # sent unchanged
    ///       { tool = "search", id = "x" },
    ///     ]
    ///
    ///     [[turn]]
    ///     silent = true                                                  # no response until the request is cancelled
    /// "#)?;
    /// # assert_eq!(failing.turns_left(), 3);
    /// # Ok::<(), toolwit_agent::model::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelError::Configuration`] with line and column for invalid TOML, an unknown key, a turn with several actions or
    /// without an action, keys that exclude each other, a key that requires another key, a malformed reference, and an
    /// expectation that can never fail or never hold. [`ModelError::Configuration`] without a line for a scenario without turns.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        parse("the scenario", text, None)
    }

    /// Reads a scenario from a file. The file name without its extension is the default name of the script.
    ///
    /// # Errors
    /// As [`ScriptedModel::parse`], and if the file cannot be read, is not a regular file or is larger than 1 MiB.
    pub async fn load(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref().to_owned();
        let subject = format!("the scenario `{}`", path.display());
        let default_name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let read_task = tokio::task::spawn_blocking(move || read_text_file(&path, SCENARIO_BYTES_MAX));
        let text = read_task
            .await
            .map_err(std::io::Error::other)
            .flatten()
            .map_err(|error| unusable(&subject, format!("cannot be read: {error}")))?;
        parse(&subject, &text, default_name)
    }
}

/// Parses a scenario. Errors begin with `subject`. A scenario without a `name` gets `default_name`, if there is one.
fn parse(subject: &str, text: &str, default_name: Option<String>) -> Result<ScriptedModel, ModelError> {
    let file: ScenarioFile =
        toml::from_str(text).map_err(|error| invalid_at(subject, text, error.span(), error.message()))?;
    if file.turn.is_empty() {
        return Err(unusable(subject, "has no `[[turn]]`"));
    }
    let mut script = ScriptedModel::new();
    script.name = file.name.or(default_name).unwrap_or(script.name);
    script.prompt = file.prompt;
    for entry in file.turn {
        let span = entry.span();
        let turn = ScriptedTurn::try_from(entry.into_inner())
            .map_err(|why| invalid_at(subject, text, Some(span.clone()), why))?;
        if let Some(flaw) = turn.flaw() {
            return Err(invalid_at(subject, text, Some(span), flaw));
        }
        script.turns.push(turn);
    }
    Ok(script)
}

/// Returns the error for an invalid part of a scenario, with the line and column at which `span` begins.
fn invalid_at(subject: &str, text: &str, span: Option<Range<usize>>, why: impl Display) -> ModelError {
    let preceding = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = preceding.matches('\n').count() + 1;
    let column = preceding.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    unusable(subject, format!("is invalid at line {line}, column {column}: {why}"))
}

/// Returns the error for a scenario that cannot be used.
fn unusable(subject: &str, why: impl Display) -> ModelError {
    ModelError::Configuration {
        message: format!("{subject} {why}"),
        suggestion: SUGGESTION.to_owned(),
    }
}

#[cfg(test)]
mod tests;
