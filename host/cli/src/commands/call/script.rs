//! Scripts: several calls in one conversation, one JSON object per line.

use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::outcome::CallOutcome;
use super::{call_context, compile_plugin, find_everywhere};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::call_arguments::read_text;
use crate::output::page::{FAINT, NAME, Page};
use crate::output::printer::{Format, Printer};
use toolwit::host::SessionCall;
use toolwit::limits::SCRIPT_BYTES_MAX;
use toolwit::tool::text::{json_type, parse_json};
use toolwit::tool::{Arguments, ToolId, ToolName};
use toolwit::{CallSession, Error, ErrorKind, Phase, Toolwit};

/// The behaviour after a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterError {
    Continue,
    Stop,
}

/// One line of a script.
#[derive(Clone, Debug, PartialEq)]
struct ScriptStep {
    tool: String,
    arguments: Arguments,
}

/// Runs a script, and returns the worst exit code of its calls. A cancelled script ends after the current call.
pub(super) async fn run_script(
    host: &Toolwit,
    script: Script,
    after_error: AfterError,
    printer: Printer,
    cancel: &CancellationToken,
) -> Result<Exit, Failure> {
    let mut runner = ScriptRunner::new(host, printer, cancel);
    let mut worst = Exit::Success;
    for step in script.0 {
        let exit = runner.run(step).await?;
        worst = worst.max(exit);
        if cancel.is_cancelled() || (exit != Exit::Success && after_error == AfterError::Stop) {
            break;
        }
    }
    Ok(worst)
}

/// A parsed script.
pub(super) struct Script(Vec<ScriptStep>);

impl Script {
    /// Reads and parses a script from a file or standard input (`-`), before any call is made.
    ///
    /// # Errors
    /// If the script cannot be read, or [`ErrorKind::InvalidArguments`] with the number of the first invalid line.
    pub(super) async fn read(source: String, cancel: &CancellationToken) -> Result<Self, Error> {
        Self::parse(&read_text(source, SCRIPT_BYTES_MAX, cancel).await?)
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let steps = lines.map(|(index, line)| {
            ScriptStep::parse(line).map_err(|why| {
                let message = format!("line {} of the script: {why}", index + 1);
                Error::new(ErrorKind::InvalidArguments, Phase::Validate, message)
                    .with_suggestion(r#"each line is a call, as in {"tool": "add", "arguments": {"a": 1, "b": 2}}"#)
            })
        });
        Ok(Self(steps.collect::<Result<_, _>>()?))
    }
}

impl ScriptStep {
    fn parse(line: &str) -> Result<Self, String> {
        let mut fields = match parse_json(line).map_err(|error| format!("it is not valid JSON: {error}"))? {
            Value::Object(fields) => fields,
            other => return Err(format!("it must be an object, not {}", json_type(&other))),
        };
        let tool = match fields.remove("tool") {
            Some(Value::String(tool)) => tool,
            _ => return Err("`tool` must be a string".to_owned()),
        };
        let arguments = match fields.remove("arguments") {
            None => Arguments::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(other) => return Err(format!("`arguments` must be an object, not {}", json_type(&other))),
        };
        match fields.keys().next() {
            None => Ok(Self { tool, arguments }),
            Some(extra) => Err(format!("unknown key `{extra}`; the keys are `tool` and `arguments`")),
        }
    }
}

/// Runs and prints the calls of a script.
struct ScriptRunner<'a> {
    host: &'a Toolwit,
    printer: Printer,
    cancel: &'a CancellationToken,
    session: CallSession,
}

/// The JSON document of a call: the name or id of the tool in the script, and the outcome of the call.
#[derive(Serialize)]
struct StepDocument<'a> {
    tool: &'a str,
    #[serde(flatten)]
    outcome: Value,
}

impl<'a> ScriptRunner<'a> {
    fn new(host: &'a Toolwit, printer: Printer, cancel: &'a CancellationToken) -> Self {
        Self {
            host,
            printer,
            cancel,
            session: host.call_session(call_context(printer, cancel)),
        }
    }

    async fn run(&mut self, step: ScriptStep) -> Result<Exit, Failure> {
        self.announce_step(&step);
        let tool_name = step.tool.clone();
        let (outcome, new_tools) = match self.call(step).await {
            Ok((tool_id, call)) => (CallOutcome::of(&tool_id, call.result), call.added),
            Err(error) => (CallOutcome::not_called(error), Vec::new()),
        };
        match self.printer.format() {
            Format::Human => outcome.print(self.printer)?,
            Format::Json => self.printer.document(&StepDocument {
                tool: &tool_name,
                outcome: outcome.document(),
            })?,
        }
        self.announce_new_tools(&new_tools);
        Ok(outcome.exit())
    }

    /// Makes the call of a step. Returns the id of the tool and the call.
    ///
    /// # Errors
    /// If the call was not made. If the tool returns an error, the returned [`SessionCall`] contains this error.
    async fn call(&mut self, step: ScriptStep) -> Result<(ToolId, SessionCall), Error> {
        let tool = find_everywhere(&mut self.session, self.host, &step.tool, self.printer).await?;
        compile_plugin(self.host, &*tool, self.printer, self.cancel).await?;
        let call = self.session.call(&tool, step.arguments).await;
        Ok((tool.definition().id.clone(), call))
    }

    fn announce_step(&self, step: &ScriptStep) {
        if self.printer.format() == Format::Json {
            return;
        }
        let mut page = Page::new();
        page.styled(FAINT, "> ").styled(NAME, &step.tool);
        if !step.arguments.is_empty() {
            page.text(" ").text(Value::Object(step.arguments.clone()));
        }
        page.end();
        self.printer.message(&page);
    }

    fn announce_new_tools(&self, names: &[ToolName]) {
        if self.printer.format() == Format::Json {
            return;
        }
        let mut page = Page::new();
        for name in names {
            page.styled(FAINT, format_args!("+ {name}")).end();
        }
        self.printer.message(&page);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_line_that_is_not_empty_is_a_call() {
        let script = Script::parse("{\"tool\": \"a\", \"arguments\": {\"x\": 1}}\n\n  \n{\"tool\": \"b\"}\n").unwrap();
        let tools: Vec<_> = script
            .0
            .iter()
            .map(|step| (step.tool.as_str(), step.arguments.len()))
            .collect();
        assert_eq!(tools, [("a", 1), ("b", 0)]);
    }

    #[test]
    fn invalid_line_is_reported_with_its_number() {
        let cases = [
            ("[]", "it must be an object"),
            ("{\"tool\": 5}", "`tool` must be a string"),
            ("{\"tool\": \"a\", \"arguments\": []}", "`arguments` must be an object"),
            ("{\"tool\": \"a\", \"args\": {}}", "unknown key `args`"),
            ("{\"tool\": \"a\", \"tool\": \"b\"}", "it is not valid JSON"),
        ];
        for (line, why) in cases {
            let error = Script::parse(&format!("\n{line}")).err().unwrap();
            assert!(
                error.message.starts_with("line 2 of the script: ") && error.message.contains(why),
                "{error}"
            );
        }
    }
}
