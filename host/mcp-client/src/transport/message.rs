//! Parses the messages of a server, with limits. Invalid parts of a result are repaired, because the protocol library
//! would reject the entire message for one of them.

use rmcp::model::{ServerJsonRpcMessage, Tool};
use serde::Deserialize;
use serde_json::{Value, json};

use super::large_fields::LargeFields;
use super::request_limit::RequestLimit;
use toolwit_core::limits::{DESCRIPTION_CHARS_MAX, MCP_MESSAGE_PARTS_MAX};
use toolwit_core::text::{json_part_count, printable};

/// The maximum length of the type in a notice about an unsupported block, in characters. A longer type is left out. It is
/// not cut, because the type could contain a secret, and the redaction would not recognise the cut secret.
const TYPE_CHARS_MAX: usize = 60;

/// The reason why a message is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageError {
    #[error("it has more than {MCP_MESSAGE_PARTS_MAX} values and names")]
    TooManyParts,
    #[error("it is a request beyond the limit")]
    TooManyRequests,
    #[error("it is not JSON")]
    NotJson,
    #[error("it is not a message of the protocol")]
    NotAMessage,
}

/// Parses a message. Takes ownership of the text to free its memory before the message is deserialized.
///
/// # Errors
/// [`MessageError::TooManyParts`], [`MessageError::NotJson`] or [`MessageError::NotAMessage`]. Requests are not
/// counted, so [`MessageError::TooManyRequests`] does not occur.
pub(crate) fn parse(text: impl AsRef<[u8]>) -> Result<ServerJsonRpcMessage, MessageError> {
    let mut value = parse_value(text.as_ref())?;
    drop(text);
    let large_fields = LargeFields::take(&mut value).map_err(|_| MessageError::NotAMessage)?;
    let mut message = serde_json::from_value(value).map_err(|_| MessageError::NotAMessage)?;
    large_fields.put_back(&mut message);
    Ok(message)
}

/// Checks the text of a message, and returns it in a form that the protocol library can parse.
///
/// # Errors
/// [`MessageError::TooManyRequests`] for a request beyond the limit, and [`MessageError::TooManyParts`] or
/// [`MessageError::NotJson`].
pub(super) fn checked_text(text: String, request_limit: &RequestLimit) -> Result<String, MessageError> {
    let value = parse_value(text.as_bytes())?;
    drop(text);
    let is_request = value.get("method").is_some() && value.get("id").is_some();
    if is_request && !request_limit.admit() {
        return Err(MessageError::TooManyRequests);
    }
    Ok(value.to_string())
}

fn parse_value(text: &[u8]) -> Result<Value, MessageError> {
    if json_part_count(text) > MCP_MESSAGE_PARTS_MAX {
        return Err(MessageError::TooManyParts);
    }
    let mut value: Value = serde_json::from_slice(text).map_err(|_| MessageError::NotJson)?;
    if let Some(result) = value.get_mut("result") {
        repair(result);
    }
    Ok(value)
}

/// Removes the invalid tools of a result, and replaces its unsupported blocks of content with notices. So the valid tools
/// and blocks can be used.
fn repair(result: &mut Value) {
    if let Some(tools) = result.get_mut("tools").and_then(Value::as_array_mut) {
        tools.retain_mut(repair_tool);
    }
    if let Some(content) = result.get_mut("content").and_then(Value::as_array_mut) {
        for block in content {
            if let Some(fields) = block.as_object_mut() {
                fields.remove("annotations");
                fields.remove("_meta");
            }
            if !is_supported(block) {
                let block_type = block.get("type").and_then(Value::as_str).unwrap_or_default();
                *block = json!({"type": "text", "text": unsupported_notice(block_type)});
            }
        }
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
    for unused in ["annotations", "icons", "execution"] {
        fields.remove(unused);
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

#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)]
mod tests {
    use rmcp::model::ServerResult;

    use super::*;

    fn result(value: Value) -> ServerResult {
        let text = json!({"jsonrpc": "2.0", "id": 1, "result": value}).to_string();
        match parse(text.as_bytes()).unwrap() {
            ServerJsonRpcMessage::Response(response) => response.result,
            other => panic!("{other:?}"),
        }
    }

    // attack: G9
    #[test]
    fn one_invalid_tool_does_not_hide_the_others() {
        let valid_tool = json!({"name": "good", "description": "x".repeat(10_000_000), "inputSchema": {"type": "object"}, "annotations": 3});
        let listed = result(
            json!({"resultType": "complete", "tools": [valid_tool, {"name": "bad"}, 7, {"name": 3, "inputSchema": {}}]}),
        );
        let ServerResult::ListToolsResult(list) = listed else {
            panic!("{listed:?}");
        };
        assert_eq!(list.tools.len(), 1);
        assert_eq!(
            list.tools[0].description.as_deref().unwrap().len(),
            DESCRIPTION_CHARS_MAX
        );
    }

    // attack: G9
    #[test]
    fn unsupported_blocks_are_replaced_with_notices() {
        let long_type = format!("a-secret-{}", "x".repeat(TYPE_CHARS_MAX));
        let content = json!([
            {"type": "text", "text": "a"}, {"type": "hologram\u{1b}", "x": 1}, {"type": "image"}, {"type": long_type},
        ]);
        let result = result(json!({"resultType": "complete", "content": content}));
        let ServerResult::CallToolResult(call_result) = result else {
            panic!("{result:?}");
        };
        let texts: Vec<_> = call_result.content.iter().filter_map(|block| block.as_text()).collect();
        assert_eq!(texts.len(), 4);
        assert_eq!(texts[1].text, "[content of the unsupported type `hologram`]");
        assert_eq!(texts[3].text, "[content of an unsupported type]", "no part of a secret");
    }

    #[test]
    fn structured_content_is_kept_also_if_it_is_null_or_absent() {
        let call_result = |value: Value| match result(value) {
            ServerResult::CallToolResult(call_result) => call_result,
            other => panic!("{other:?}"),
        };
        let with_both =
            call_result(json!({"content": [{"type": "text", "text": "a"}], "structuredContent": {"n": [1, {}]}}));
        assert_eq!(with_both.structured_content, Some(json!({"n": [1, {}]})));
        assert_eq!(with_both.content[0].as_text().unwrap().text, "a");
        let structured_only = call_result(json!({"structuredContent": null}));
        assert_eq!(
            (structured_only.structured_content, structured_only.content.len()),
            (Some(Value::Null), 0)
        );
        let unstructured = call_result(json!({"content": [], "isError": true}));
        assert_eq!(
            (unstructured.structured_content, unstructured.is_error),
            (None, Some(true))
        );
    }

    // attack: G9
    #[test]
    fn the_number_of_parts_is_limited_before_parsing() {
        let many_lists = format!("[{}]", vec!["[]"; MCP_MESSAGE_PARTS_MAX].join(","));
        assert_eq!(parse(many_lists.as_bytes()).unwrap_err(), MessageError::TooManyParts);
        let string_with_delimiters = json!([",:[{\\\"".repeat(MCP_MESSAGE_PARTS_MAX)]).to_string();
        assert_eq!(
            parse(string_with_delimiters.as_bytes()).unwrap_err(),
            MessageError::NotAMessage,
            "a string counts as one part, whatever it contains"
        );
        assert_eq!(parse(b"hello").unwrap_err(), MessageError::NotJson);
        assert_eq!(parse("[".repeat(200).as_bytes()).unwrap_err(), MessageError::NotJson);
    }
}
