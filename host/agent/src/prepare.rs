//! From what a model wrote to calls that can be run and remembered.

use super::history::History;
use crate::model::FinishReason;
use toolwit_core::{Arguments, ToolCall, ToolDefinition, ToolError, ToolName, ToolSet, parse_arguments};
use toolwit_core::{Error, ErrorKind, Phase};

/// How much of an unknown name is repeated, in characters.
const NAME_CHARS_SHOWN: usize = 80;

/// How many names are told to a model that called one that is like none of them.
const NAMES_SHOWN: usize = 20;

/// How many parameters of a tool are told to a model that called it wrongly.
const PARAMETERS_SHOWN: usize = 12;

/// One call of a response.
pub(super) struct Prepared {
    /// The call as the history holds it: an id of its own, a name that providers accept, arguments as they are executed.
    pub(super) call: ToolCall,
    /// The name that the model wrote.
    pub(super) wanted: String,
    /// What the tool gets, or why it is not run.
    pub(super) arguments: Result<Arguments, Error>,
    /// Whether the text of the arguments had to be mended.
    pub(super) repaired: bool,
}

/// Makes the calls of a response ready.
///
/// Text that is no JSON object is `{}` in the history: some servers parse what they are sent back, and nothing was executed.
pub(super) fn prepare(calls: Vec<ToolCall>, finish: &FinishReason, history: &mut History) -> Vec<Prepared> {
    calls
        .into_iter()
        .map(|call| {
            let read = read_arguments(&call.arguments, finish);
            let arguments = match &read {
                Ok((_, false)) => call.arguments,
                Ok((arguments, true)) => serde_json::to_string(arguments).unwrap_or_else(|_| "{}".to_owned()),
                Err(_) => "{}".to_owned(),
            };
            Prepared {
                call: ToolCall {
                    id: history.claim_id(&call.id),
                    name: name_in_history(&call.name),
                    arguments,
                },
                wanted: call.name,
                repaired: matches!(read, Ok((_, true))),
                arguments: read.map(|(arguments, _)| arguments),
            }
        })
        .collect()
}

/// Reads arguments and tells whether they were mended. Of an answer that was cut, only text that is whole as it stands counts.
fn read_arguments(text: &str, finish: &FinishReason) -> Result<(Arguments, bool), Error> {
    let parsed = parse_arguments(text);
    if *finish == FinishReason::Length && !matches!(&parsed, Ok(parsed) if !parsed.repaired) {
        let message = "the answer was cut before this call was complete; it was not executed";
        return Err(Error::new(ErrorKind::InvalidArguments, Phase::Validate, message)
            .with_suggestion("call it again, with shorter arguments"));
    }
    parsed
        .map(|parsed| (parsed.arguments, parsed.repaired))
        .map_err(Error::from)
}

/// Writes a name so that providers accept the history that holds it.
fn name_in_history(name: &str) -> String {
    let valid = ToolName::parse(name).or_else(|| ToolName::sanitised(name));
    valid.unwrap_or_else(|| ToolName::hashed(name, name)).to_string()
}

/// Cuts a name that a model made up, to repeat it.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(NAME_CHARS_SHOWN).collect()
}

/// Refuses a name that no tool has.
pub(super) fn unknown_tool(name: &str, nearest: &[ToolName], known: &ToolSet) -> Error {
    let message = format!("no tool is named `{}`", shown(name));
    let error = Error::new(ErrorKind::UnknownTool, Phase::Validate, message);
    if !nearest.is_empty() {
        return error.with_suggestion(format!("did you mean {}?", list(nearest)));
    }
    let names: Vec<_> = known.iter().take(NAMES_SHOWN).map(|tool| tool.name.clone()).collect();
    match known.len() {
        0 => error.with_suggestion("there are no tools; answer without one"),
        all if all > names.len() => error.with_suggestion(format!("some of the {all} tools are {}", list(&names))),
        _ => error.with_suggestion(format!("the tools are {}", list(&names))),
    }
}

/// Refuses a name whose tool was removed.
pub(super) fn removed_tool(name: &str) -> Error {
    let message = format!("`{name}` was there and has been removed; it cannot be called any more");
    Error::new(ErrorKind::ToolUnavailable, Phase::Validate, message)
        .with_suggestion("call another tool, or answer without it")
}

/// Refuses a call that was not begun, for a reason that lies outside of it.
pub(super) fn not_run(kind: ErrorKind, reason: &str) -> Error {
    Error::new(kind, Phase::Validate, format!("not run: {reason}"))
}

/// Adds to a complaint about arguments what the tool expects.
pub(super) fn with_expectation(error: ToolError, definition: &ToolDefinition, name: &ToolName) -> ToolError {
    if error.report().kind != ErrorKind::InvalidArguments {
        return error;
    }
    error.map(|error| error.with_tool(name.as_str()).with_suggestion(expectation(definition)))
}

fn expectation(definition: &ToolDefinition) -> String {
    let schema = &definition.input_schema;
    let required: Vec<_> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str())
        .collect();
    let parameters: Vec<_> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .take(PARAMETERS_SHOWN)
        .map(|(name, schema)| {
            let kind = schema["type"].as_str().unwrap_or("see its schema");
            let need = if required.contains(&name.as_str()) {
                "required"
            } else {
                "optional"
            };
            format!("`{name}` ({kind}, {need})")
        })
        .collect();
    if parameters.is_empty() {
        return "send one JSON object that fits the tool's schema".to_owned();
    }
    format!("send one JSON object with {}", parameters.join(", "))
}

fn list(names: &[ToolName]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
