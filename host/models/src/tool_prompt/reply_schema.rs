//! The schema to which a server constrains a response.

use serde_json::{Value, json};

use super::json_reply::{ANSWER_KEY, TOOL_CALLS_KEY};
use crate::schema::closed_schema;
use toolwit_agent::model::{ChatRequest, DeclaredTool, ToolChoice};

/// The maximum number of calls in one response. Without this limit, a small model could repeat calls until the token limit.
const CALLS_MAX: u32 = 8;

/// Returns the schema of a response. Depending on the tool choice, it accepts an answer, calls of the request's tools, or
/// both.
pub(super) fn reply_schema(request: &ChatRequest<'_>) -> Value {
    let answer = match &request.options.answer_schema {
        Some(schema) => closed_schema(schema).unwrap_or_else(|| json!({})),
        None => json!({"type": "string"}),
    };
    let answer = object_schema(&[(ANSWER_KEY, answer)]);
    let calls: Vec<Value> = request.tools.iter().map(call_schema).collect();
    let calls = json!({"type": "array", "items": {"anyOf": calls}, "minItems": 1, "maxItems": CALLS_MAX});
    let calls = object_schema(&[(TOOL_CALLS_KEY, calls)]);
    match request.options.tool_choice {
        ToolChoice::None => answer,
        ToolChoice::Required => calls,
        ToolChoice::Auto => json!({"anyOf": [calls, answer]}),
    }
}

fn call_schema(tool: &DeclaredTool) -> Value {
    let arguments = closed_schema(&tool.definition.input_schema);
    // A schema that cannot be converted is replaced by one that accepts every object. The agent checks the arguments before the
    // call.
    let arguments = arguments
        .filter(|schema| schema.get("type").is_some_and(|name| name == "object"))
        .unwrap_or_else(|| json!({"type": "object"}));
    object_schema(&[
        ("name", json!({"enum": [tool.name.as_str()]})),
        ("arguments", arguments),
    ])
}

/// Returns the schema of an object that has exactly these properties.
fn object_schema(properties: &[(&str, Value)]) -> Value {
    let names: Vec<_> = properties.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<_, _> = properties
        .iter()
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
        .collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}
