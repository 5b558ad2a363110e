//! Several calls in one conversation, from a file of JSON lines.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::answer::Answer;
use super::prepare;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::call_arguments::read_text;
use crate::input::tool_lookup::with_reason;
use crate::output::page::{FAINT, NAME, Page};
use crate::output::printer::{Format, Printer};
use crate::output::tool_output::ToolOutput;
use toolwit::Toolwit;
use toolwit::injection::{
    CompletedCall, Entities, EntityTools, Injection, InjectionContext, InjectionStrategy, write_entity_tool_names,
};
use toolwit::sandbox::Scope;
use toolwit::tool::text::{json_type, parse_json};
use toolwit::tool::{AddOutcome, Arguments, Tool, ToolContext, ToolError, ToolLookup, ToolName, ToolResult, ToolSet};
use toolwit::{Error, ErrorKind, Phase};

/// The longest script that is read, in bytes.
const SCRIPT_BYTES_MAX: u64 = 64 << 20;

/// What happens after a call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterError {
    GoOn,
    Stop,
}

/// One line of a script.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    tool: String,
    arguments: Arguments,
}

/// Plays a script, and ends as its worst call did.
pub(super) async fn play(
    host: &Toolwit,
    script: Script,
    after_error: AfterError,
    printer: Printer,
    cancel: &CancellationToken,
) -> Result<Exit, Failure> {
    let mut stage = Stage::new(host, printer, cancel);
    let mut worst = Exit::Success;
    for step in script.0 {
        let exit = stage.play(step).await?;
        worst = worst.max(exit);
        if cancel.is_cancelled() || (exit != Exit::Success && after_error == AfterError::Stop) {
            break;
        }
    }
    Ok(worst)
}

/// The calls of a script, all of them well-formed.
pub(super) struct Script(Vec<Step>);

impl Script {
    /// Reads a script from a file, or from `-`, standard input. Nothing is called before all of it was read.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] with the number of the line that is no call.
    pub(super) async fn read(place: String, cancel: &CancellationToken) -> Result<Self, Error> {
        Self::parse(&read_text(place, SCRIPT_BYTES_MAX, cancel).await?)
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let steps = lines.map(|(index, line)| {
            Step::parse(line).map_err(|why| {
                let message = format!("line {} of the script: {why}", index + 1);
                Error::new(ErrorKind::InvalidArguments, Phase::Validate, message)
                    .with_suggestion(r#"each line is a call, as in {"tool": "add", "arguments": {"a": 1, "b": 2}}"#)
            })
        });
        Ok(Self(steps.collect::<Result<_, _>>()?))
    }
}

impl Step {
    fn parse(line: &str) -> Result<Self, String> {
        let mut fields = match parse_json(line).map_err(|error| format!("it is not valid JSON: {error}"))? {
            Value::Object(fields) => fields,
            other => return Err(format!("it must be an object, not {}", json_type(&other))),
        };
        let tool = match fields.remove("tool") {
            Some(Value::String(tool)) => tool,
            _ => return Err("it must name its `tool`, a string".to_owned()),
        };
        let arguments = match fields.remove("arguments") {
            None => Arguments::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(other) => return Err(format!("`arguments` must be an object, not {}", json_type(&other))),
        };
        match fields.keys().next() {
            None => Ok(Self { tool, arguments }),
            Some(extra) => Err(format!("there is no key `{extra}`; known are `tool` and `arguments`")),
        }
    }
}

/// The tools and entities of the conversation in which a script is played.
struct Stage<'a> {
    host: &'a Toolwit,
    printer: Printer,
    context: ToolContext,
    /// The tools that were there from the start.
    start: Vec<Arc<dyn Tool>>,
    tools: ToolSet,
    entities: Entities,
    calls: u32,
}

/// What a call gave, with the name under which it was called.
#[derive(Serialize)]
struct Played<'a> {
    tool: &'a str,
    #[serde(flatten)]
    answer: Value,
}

impl<'a> Stage<'a> {
    fn new(host: &'a Toolwit, printer: Printer, cancel: &CancellationToken) -> Self {
        let start = host.tools(&Scope::new());
        let tools = ToolSet::from_iter(start.iter().cloned());
        Self {
            host,
            printer,
            context: ToolContext::new()
                .with_cancel(cancel.clone())
                .with_output(Arc::new(ToolOutput(printer))),
            start,
            tools,
            entities: Entities::default(),
            calls: 0,
        }
    }

    async fn play(&mut self, step: Step) -> Result<Exit, Failure> {
        self.announce(&step);
        let called = step.tool.clone();
        let (answer, new) = match self.find(&step.tool) {
            Ok(tool) => {
                let mut answered = self.call(&*tool, step.arguments.clone()).await;
                let new = match &mut answered {
                    Ok(result) => self.inject(step, &tool, result),
                    Err(_) => Vec::new(),
                };
                (Answer::of(&tool.definition().id, answered), new)
            }
            Err(error) => (Answer::refused(error), Vec::new()),
        };
        match self.printer.format() {
            Format::Human => answer.print(self.printer)?,
            Format::Json => self.printer.document(&Played {
                tool: &called,
                answer: answer.document(),
            })?,
        }
        self.tell_new(&new);
        Ok(answer.exit())
    }

    /// Finds a tool by its id or name: those of the start as `call` does, then those that came in.
    fn find(&self, wanted: &str) -> Result<Arc<dyn Tool>, Error> {
        let unknown = match Toolwit::find_tool(&self.start, wanted) {
            Err(error) if error.kind == ErrorKind::UnknownTool => error,
            found => return found,
        };
        let nearest = match self.tools.look_up(wanted) {
            ToolLookup::Found(named) => return Ok(named.tool),
            ToolLookup::Removed(_) => Vec::new(),
            ToolLookup::Unknown(nearest) => nearest,
        };
        if let Some(named) = self.tools.iter().find(|named| named.definition.id.as_str() == wanted) {
            return Ok(named.tool.clone());
        }
        let nearest: Vec<_> = nearest.iter().map(|name| format!("`{name}`")).collect();
        let unknown = match nearest.is_empty() {
            true => unknown,
            false => Error::new(unknown.kind, unknown.phase, unknown.message.clone())
                .with_suggestion(format!("did you mean {}?", nearest.join(" or "))),
        };
        Err(with_reason(unknown, self.host, wanted))
    }

    async fn call(&self, tool: &dyn Tool, arguments: Arguments) -> Result<ToolResult, ToolError> {
        prepare(self.host, tool, self.printer, self.context.cancel())
            .await
            .map_err(ToolError::Model)?;
        let context = match tool.calls_tools() {
            true => self.context.clone().with_tools(Arc::new(self.tools.clone())),
            false => self.context.clone(),
        };
        tool.call(arguments, &context).await
    }

    /// Brings in the methods of the entities in a result. Returns the names that are new.
    fn inject(&mut self, step: Step, tool: &Arc<dyn Tool>, result: &mut ToolResult) -> Vec<ToolName> {
        let name = ToolName::sanitised(tool.definition().name());
        let Some(name) = name else { return Vec::new() };
        self.calls += 1;
        let call = CompletedCall::new(
            self.calls.to_string(),
            name,
            step.arguments,
            tool.clone(),
            result.clone(),
        );
        let context = InjectionContext::new(&[], &self.tools, &self.entities, &call, self.calls);
        let Injection { add, discovered, .. } = EntityTools.evaluate(&context);
        for discovery in &discovered {
            self.entities.record(discovery);
        }
        let added = add.into_iter().filter_map(|tool| match self.tools.add(tool) {
            AddOutcome::New(name) => Some(name),
            AddOutcome::Rebound(_) => None,
        });
        let added = added.collect();
        write_entity_tool_names(result, &discovered, &self.tools);
        added
    }

    fn announce(&self, step: &Step) {
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

    fn tell_new(&self, names: &[ToolName]) {
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
    fn a_script_has_a_call_on_each_line() {
        let script = Script::parse("{\"tool\": \"a\", \"arguments\": {\"x\": 1}}\n\n  \n{\"tool\": \"b\"}\n").unwrap();
        let tools: Vec<_> = script
            .0
            .iter()
            .map(|step| (step.tool.as_str(), step.arguments.len()))
            .collect();
        assert_eq!(tools, [("a", 1), ("b", 0)]);
    }

    #[test]
    fn a_line_that_is_no_call_is_named() {
        let cases = [
            ("[]", "it must be an object"),
            ("{\"tool\": 5}", "it must name its `tool`"),
            ("{\"tool\": \"a\", \"arguments\": []}", "`arguments` must be an object"),
            ("{\"tool\": \"a\", \"args\": {}}", "there is no key `args`"),
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
