//! The gateway tool `call_tool`, which calls injected tools, so that injected tools need not be declared.

use serde_json::{Value, json};

use toolwit_core::Error;
use toolwit_core::{Arguments, EffectClass, NamedTool, NativeTool, ToolDefinition, ToolError, ToolId, parse_arguments};

/// The name of the gateway tool.
pub(crate) const CALL_TOOL: &str = "call_tool";

/// The heading above the descriptions of injected tools.
pub(super) const DESCRIPTIONS_HEADING: &str =
    "More tools can be called now, with `call_tool` and their `name` and `arguments`:";

/// Returns the gateway tool, through which the model calls injected tools. For a call of the model, the tool loop runs
/// the target tool instead. The gateway tool itself runs only if another tool calls it, and returns an error.
///
/// # Errors
/// Never in practice: its schema is fixed.
pub(crate) fn gateway_tool() -> Result<NativeTool, Error> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of the tool."},
            "arguments": {"type": "object", "description": "The arguments for the tool."},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    let description = "Calls a tool that was described in the conversation and is not among the declared tools.";
    let definition =
        ToolDefinition::new(ToolId::host(CALL_TOOL), CALL_TOOL, description, schema).with_effect(EffectClass::Read);
    NativeTool::from_definition(definition, |_, _| async {
        Err(ToolError::invalid_arguments(
            "only a model can call a tool through `call_tool`",
        ))
    })
}

/// Returns the name and the arguments of the target tool, from the arguments of a call of the gateway tool. The inner
/// arguments may also be JSON text, as some models write them.
///
/// # Errors
/// [`ToolError::Model`] if the name is not a string or is `call_tool`, or if the inner arguments are neither an object
/// nor text that [`parse_arguments`] accepts.
pub(crate) fn gateway_target(arguments: &Arguments) -> Result<(String, Arguments), ToolError> {
    let name = match arguments.get("name").and_then(Value::as_str) {
        None => return Err(ToolError::invalid_arguments("/name: it must be the name of a tool")),
        Some(CALL_TOOL) => return Err(ToolError::invalid_arguments("/name: this tool does not call itself")),
        Some(name) => name.to_owned(),
    };
    let arguments = match arguments.get("arguments") {
        None | Some(Value::Null) => Arguments::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(Value::String(text)) => parse_arguments(text)?.arguments,
        Some(_) => return Err(ToolError::invalid_arguments("/arguments: it must be an object")),
    };
    Ok((name, arguments))
}

/// Returns a line that describes a tool whose definition is not declared to the model.
pub(super) fn description_line(tool: &NamedTool) -> String {
    let definition = &tool.definition;
    format!(
        "- `{}`: {} Arguments: {}\n",
        tool.name, definition.description, definition.input_schema
    )
}
