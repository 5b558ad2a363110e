//! One tool through which all others are called, so that the declared tools never change.

use serde_json::{Value, json};

use super::prepare::Prepared;
use toolwit_core::Error;
use toolwit_core::{Arguments, NativeTool, ToolDefinition, ToolError, ToolId, parse_arguments};

/// The name of the tool through which others are called.
pub(super) const CALL_TOOL: &str = "call_tool";

/// What stands before the descriptions of tools that came in.
pub(super) const DESCRIBED: &str = "More tools can be called now, with `call_tool` and their `name` and `arguments`:";

/// Makes the tool that is declared for all that come in later. The loop calls the tool that is meant; this one never runs
/// except for a call that names none.
///
/// # Errors
/// None in practice: its schema is fixed.
pub(super) fn call_tool() -> Result<NativeTool, Error> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The tool's name, as it was given."},
            "arguments": {"type": "object", "description": "What the tool is called with."},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    let told = "Calls a tool that was described in the conversation and is not among these.";
    let definition = ToolDefinition::new(ToolId::host(CALL_TOOL), CALL_TOOL, told, schema);
    NativeTool::from_definition(definition, |_, _| async {
        Err(ToolError::invalid_arguments("/name: it names no tool"))
    })
}

/// Turns a call of the gateway into one of the tool that it names. In the history it stays the call that the model made.
pub(super) fn through(mut prepared: Prepared) -> Prepared {
    if prepared.wanted != CALL_TOOL {
        return prepared;
    }
    let Ok(given) = &prepared.arguments else {
        return prepared;
    };
    match unwrap(given) {
        Ok((name, arguments)) => {
            prepared.wanted = name;
            prepared.arguments = Ok(arguments);
        }
        Err(error) => prepared.arguments = Err(Error::from(error)),
    }
    prepared
}

/// Reads which tool is meant, and its arguments; models also write those as text.
pub(super) fn unwrap(given: &Arguments) -> Result<(String, Arguments), ToolError> {
    let name = match given.get("name").and_then(Value::as_str) {
        None => return Err(ToolError::invalid_arguments("/name: it must be the name of a tool")),
        Some(CALL_TOOL) => return Err(ToolError::invalid_arguments("/name: this tool does not call itself")),
        Some(name) => name.to_owned(),
    };
    let arguments = match given.get("arguments") {
        None | Some(Value::Null) => Arguments::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(Value::String(text)) => parse_arguments(text)?.arguments,
        Some(_) => return Err(ToolError::invalid_arguments("/arguments: it must be an object")),
    };
    Ok((name, arguments))
}
