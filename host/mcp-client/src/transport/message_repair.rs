//! The repair of messages: the protocol library would reject the entire message for one invalid part.

use rmcp::model::Tool;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use toolwit_core::limits::DESCRIPTION_CHARS_MAX;
use toolwit_core::text::printable;

/// The maximum length of the type in a notice about an unsupported block, in characters. A longer type is left out. It is
/// not cut, because the type could contain a secret, and the redaction would not recognise the cut secret.
const TYPE_CHARS_MAX: usize = 60;

/// The entry of a tool's `_meta` that records that the tool can be called only as a task.
pub(crate) const REQUIRES_TASK: &str = "toolwit/requires-task";

/// The code of an error without a valid code.
const UNKNOWN_ERROR: i32 = -32_000;

/// Repairs the result or the error of a message.
pub(super) fn repair(message: &mut Value) {
    if let Some(result) = message.get_mut("result").and_then(Value::as_object_mut) {
        repair_result(result);
    }
    if let Some(error) = message.get_mut("error") {
        repair_error(error);
    }
}

/// Removes the invalid tools of a result, and replaces its unsupported blocks of content with notices. So the valid tools
/// and blocks can be used.
fn repair_result(result: &mut Map<String, Value>) {
    if let Some(tools) = result.get_mut("tools").and_then(Value::as_array_mut) {
        tools.retain_mut(repair_tool);
    }
    match result.get_mut("content") {
        Some(content @ (Value::String(_) | Value::Object(_))) => {
            let block = match content.take() {
                Value::String(text) => json!({"type": "text", "text": text}),
                block => block,
            };
            *content = json!([block]);
        }
        Some(content @ Value::Null) => *content = json!([]),
        _ => {}
    }
    for block in result
        .get_mut("content")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        repair_block(block);
    }
    if result.get("isError").is_some_and(|is_error| !is_error.is_boolean()) {
        result.remove("isError");
    }
    if result.get("protocolVersion").is_some_and(Value::is_string) {
        repair_initialization(result);
    }
}

/// Repairs the result of `initialize`. The client needs neither the name nor the version of the server.
fn repair_initialization(result: &mut Map<String, Value>) {
    let capabilities = result.entry("capabilities").or_insert_with(|| json!({}));
    match capabilities {
        Value::Object(capabilities) => capabilities.retain(|_, capability| capability.is_object()),
        other => *other = json!({}),
    }
    let info = result.entry("serverInfo").or_insert_with(|| json!({}));
    if !info.is_object() {
        *info = json!({});
    }
    for field in ["name", "version"] {
        let text = match info.get(field) {
            Some(Value::String(_)) => continue,
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        info[field] = json!(text);
    }
}

/// Converts an error without a code or a message to one that has both.
fn repair_error(error: &mut Value) {
    if let Value::String(message) = error {
        *error = json!({"code": UNKNOWN_ERROR, "message": message});
    }
    let Some(fields) = error.as_object_mut() else {
        *error = json!({"code": UNKNOWN_ERROR, "message": "the server gave no reason"});
        return;
    };
    let code = fields.get("code").and_then(Value::as_i64);
    if code.is_none_or(|code| i32::try_from(code).is_err()) {
        fields.insert("code".to_owned(), json!(UNKNOWN_ERROR));
    }
    if !fields.get("message").is_some_and(Value::is_string) {
        fields.insert("message".to_owned(), json!("the server gave no reason"));
    }
}

fn repair_block(block: &mut Value) {
    if let Some(fields) = block.as_object_mut() {
        fields.remove("annotations");
        fields.remove("_meta");
    }
    if !is_supported(block) {
        let block_type = block.get("type").and_then(Value::as_str).unwrap_or_default();
        *block = json!({"type": "text", "text": unsupported_notice(block_type)});
    }
}

/// Returns the notice that replaces a block with an unsupported type or without a required field.
fn unsupported_notice(block_type: &str) -> String {
    let block_type = printable(block_type);
    if block_type.chars().nth(TYPE_CHARS_MAX).is_some() {
        return "[content of an unsupported type]".to_owned();
    }
    format!("[content of the unsupported type `{block_type}`]")
}

/// Removes unused fields of a tool, and cuts a description that is too long. Returns whether the tool is valid.
fn repair_tool(tool: &mut Value) -> bool {
    let Some(fields) = tool.as_object_mut() else {
        return false;
    };
    for unused in ["annotations", "icons"] {
        fields.remove(unused);
    }
    // The protocol library does not read `execution`.
    let execution = fields.remove("execution").unwrap_or_default();
    if execution
        .get("taskSupport")
        .is_some_and(|support| support == "required")
    {
        let meta = fields.entry("_meta").or_insert_with(|| json!({}));
        if !meta.is_object() {
            *meta = json!({});
        }
        meta[REQUIRES_TASK] = json!(true);
    }
    if fields.get("inputSchema").is_none_or(Value::is_null) {
        fields.insert("inputSchema".to_owned(), json!({"type": "object"}));
    }
    if !fields.get("outputSchema").is_none_or(Value::is_object) {
        fields.remove("outputSchema");
    }
    if let Some(Value::String(description)) = fields.get_mut("description")
        && let Some((end, _)) = description.char_indices().nth(DESCRIPTION_CHARS_MAX)
    {
        description.truncate(end);
    }
    let is_valid = Tool::deserialize(&*tool).is_ok();
    if !is_valid {
        tracing::warn!("an MCP server listed an invalid tool, which is left out");
    }
    is_valid
}

/// Returns whether a block of content has a supported type and the fields of this type.
fn is_supported(block: &Value) -> bool {
    let has_strings = |value: &Value, fields: &[&str]| {
        fields
            .iter()
            .all(|field| value.get(field).is_some_and(Value::is_string))
    };
    match block.get("type").and_then(Value::as_str) {
        Some("text") => has_strings(block, &["text"]),
        Some("image" | "audio") => has_strings(block, &["data", "mimeType"]),
        Some("resource_link") => has_strings(block, &["uri", "name"]),
        Some("resource") => block.get("resource").is_some_and(|resource| {
            has_strings(resource, &["uri"]) && (has_strings(resource, &["text"]) || has_strings(resource, &["blob"]))
        }),
        _ => false,
    }
}
