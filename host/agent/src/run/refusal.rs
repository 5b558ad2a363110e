//! Errors that the model reads for calls that do not run, that panic, or that only the operator can fix.

use crate::toolbox::Toolbox;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{NamedTool, ToolDefinition, ToolError, ToolId, ToolName, ToolSet};

/// Maximum length of a tool name in an error, in characters. The model can write a name of any length.
const NAME_CHARS_SHOWN: usize = 80;

/// Maximum number of tool names in the error for an unknown name. They are listed if no tool has a similar name.
const NAMES_SHOWN: usize = 20;

/// Maximum number of parameters in the error for invalid arguments.
const PARAMETERS_SHOWN: usize = 12;

/// Truncates an unknown name for an error message.
pub(super) fn shortened_name(name: &str) -> String {
    name.chars().take(NAME_CHARS_SHOWN).collect()
}

/// Returns the error for a name that no tool has.
pub(super) fn unknown_tool(name: &str, nearest: &[ToolName], tools: &ToolSet) -> Error {
    let message = format!("no tool is named `{}`", shortened_name(name));
    let error = Error::new(ErrorKind::UnknownTool, Phase::Validate, message);
    if !nearest.is_empty() {
        return error.with_suggestion(format!("did you mean {}?", quoted(nearest)));
    }
    let names: Vec<_> = tools.iter().take(NAMES_SHOWN).map(|tool| tool.name.clone()).collect();
    match tools.len() {
        0 => error.with_suggestion("there are no tools; answer without one"),
        count if count > names.len() => {
            error.with_suggestion(format!("some of the {count} tools are {}", quoted(&names)))
        }
        _ => error.with_suggestion(format!("the tools are {}", quoted(&names))),
    }
}

/// Returns the error for a name whose tool was removed. If the result of a tool that still exists had added it, the error names
/// this tool.
pub(super) fn removed_tool(name: &str, id: &ToolId, toolbox: &Toolbox) -> Error {
    let message = format!("`{name}` has been removed and can no longer be called");
    let error = Error::new(ErrorKind::ToolUnavailable, Phase::Validate, message);
    let parent = toolbox.lineage().parent(id).filter(|parent| !parent.is_host());
    match parent.and_then(|parent| toolbox.callable().by_id(parent)) {
        Some(parent) => error.with_suggestion(format!("call `{}` again, whose result may add it again", parent.name)),
        None => error.with_suggestion("call another tool, or answer without it"),
    }
}

/// Returns the error for a call whose arguments were written for an earlier definition of its tool.
pub(super) fn redefined_tool(tool: &NamedTool) -> Error {
    let message = format!(
        "not run: an earlier call of this response changed the parameters of `{}`",
        tool.name
    );
    Error::new(ErrorKind::InvalidArguments, Phase::Validate, message)
        .with_tool(tool.name.as_str())
        .with_suggestion(parameter_suggestion(&tool.definition))
}

/// Returns the error for a name whose tool is inside a closed facade. `path` holds the facades to open, the outermost
/// first.
pub(super) fn tool_in_facade(name: &str, path: &[String]) -> Error {
    let name = shortened_name(name);
    let facades: Vec<_> = path.iter().map(|facade| format!("`{facade}`")).collect();
    let outermost = facades.first().map_or("a facade", String::as_str);
    let message = format!("`{name}` is inside {outermost}, which is not open");
    Error::new(ErrorKind::ToolUnavailable, Phase::Validate, message)
        .with_suggestion(format!("call {} first, then `{name}`", facades.join(", then ")))
}

/// Returns the error for a call that does not run, for a reason other than its name or its arguments.
pub(super) fn not_run(kind: ErrorKind, reason: &str) -> Error {
    Error::new(kind, Phase::Validate, format!("not run: {reason}"))
}

/// Adds the expected parameters to an [`ErrorKind::InvalidArguments`] error. Returns other errors unchanged.
pub(super) fn with_expected_parameters(error: ToolError, definition: &ToolDefinition, name: &ToolName) -> ToolError {
    if error.report().kind != ErrorKind::InvalidArguments {
        return error;
    }
    error.map(|error| {
        error
            .with_tool(name.as_str())
            .with_suggestion(parameter_suggestion(definition))
    })
}

/// Returns a suggestion that lists the parameters of a tool.
fn parameter_suggestion(definition: &ToolDefinition) -> String {
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
            let json_type = schema["type"].as_str().unwrap_or("see its schema");
            let is_required = required.contains(&name.as_str());
            let need = if is_required { "required" } else { "optional" };
            format!("`{name}` ({json_type}, {need})")
        })
        .collect();
    if parameters.is_empty() {
        return "send one JSON object that fits the tool's schema".to_owned();
    }
    format!("send one JSON object with {}", parameters.join(", "))
}

fn quoted(names: &[ToolName]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Returns the error that the model reads instead of an error that only the operator can fix. It hides the details of
/// that error. It states that the call may have taken effect, because an agent can fail after some of its own calls ran.
pub(super) fn hidden_operator_error(kind: ErrorKind) -> Error {
    let message =
        "the call failed, and only the operator of the tool can fix the cause; the call may have taken effect";
    Error::new(kind, Phase::Execute, message)
}

/// Returns the error for a call whose tool panicked.
pub(super) fn panicked_call() -> Error {
    let message = "the tool panicked inside the host; the call may have taken effect";
    Error::new(ErrorKind::Internal, Phase::Execute, message)
}
