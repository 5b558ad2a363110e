//! Parses the messages of a server, with limits. Invalid parts of a result are repaired, because the protocol library
//! would reject the entire message for one of them.

use rmcp::model::ServerJsonRpcMessage;
use serde_json::Value;

use super::large_fields::LargeFields;
use super::message_repair::repair;
use super::nesting::without_deep_values;
use super::request_limit::RequestLimit;
use toolwit_core::limits::{MCP_MESSAGE_DEPTH_MAX, MCP_MESSAGE_PARTS_MAX};
use toolwit_core::text::{json_part_count, json_type};

/// The reason why a message is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageError {
    #[error("it has more than {MCP_MESSAGE_PARTS_MAX} values and names")]
    TooManyParts,
    #[error("it is a request beyond the limit")]
    TooManyRequests,
    #[error("it is nested deeper than {MCP_MESSAGE_DEPTH_MAX}")]
    TooDeep,
    #[error("it is not JSON: {0}")]
    NotJson(String),
    #[error("it is not a message of the protocol: {0}")]
    NotAMessage(String),
}

/// Parses a message. Takes ownership of the text to free its memory before the message is deserialized.
///
/// # Errors
/// The reason why the message is not used. Requests are not counted, so [`MessageError::TooManyRequests`] does not occur.
pub(crate) fn parse(text: impl AsRef<[u8]>) -> Result<ServerJsonRpcMessage, MessageError> {
    let value = parse_value(text.as_ref())?;
    drop(text);
    from_value(value)
}

/// Deserializes a message that [`parse_value`] returned.
///
/// # Errors
/// [`MessageError::NotAMessage`].
pub(super) fn from_value(mut value: Value) -> Result<ServerJsonRpcMessage, MessageError> {
    let not_a_message = |error: serde_json::Error| MessageError::NotAMessage(error.to_string());
    let large_fields = LargeFields::take(&mut value).map_err(not_a_message)?;
    let mut message = serde_json::from_value(value).map_err(not_a_message)?;
    large_fields.put_back(&mut message);
    Ok(message)
}

/// Parses the text of a message, repairs it and checks its form. A request is counted.
///
/// # Errors
/// As [`parse`], and [`MessageError::TooManyRequests`] for a request beyond the limit.
pub(super) fn checked_value(text: &[u8], request_limit: &RequestLimit) -> Result<Value, MessageError> {
    let value = parse_value(text)?;
    let is_request = value.get("method").is_some() && value.get("id").is_some();
    if is_request && !request_limit.admit() {
        return Err(MessageError::TooManyRequests);
    }
    Ok(value)
}

/// Returns a text without the byte order mark with which some programs begin their output.
pub(super) fn without_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Parses the text of a message, repairs it and checks its form.
///
/// # Errors
/// As [`parse`].
pub(super) fn parse_value(text: &[u8]) -> Result<Value, MessageError> {
    let text = without_byte_order_mark(text);
    if json_part_count(text) > MCP_MESSAGE_PARTS_MAX {
        return Err(MessageError::TooManyParts);
    }
    let shallow_text = without_deep_values(text, MCP_MESSAGE_DEPTH_MAX);
    let value: Value = serde_json::from_slice(shallow_text.as_deref().unwrap_or(text))
        .map_err(|error| MessageError::NotJson(error.to_string()))?;
    let mut value = without_batch(value);
    // Only the schemas of tools are usable without their deepest values.
    let is_tool_list = value.pointer("/result/tools").is_some_and(Value::is_array);
    if shallow_text.is_some() && !is_tool_list {
        return Err(MessageError::TooDeep);
    }
    repair(&mut value);
    check_form(&value)?;
    Ok(value)
}

/// Returns the message of a batch of one message. Servers of revision 2025-03-26 may send batches.
fn without_batch(value: Value) -> Value {
    match value {
        Value::Array(mut messages) if messages.len() == 1 => messages.pop().unwrap_or_default(),
        value => value,
    }
}

/// Checks that a value is a request, a notification, a response or an error.
fn check_form(value: &Value) -> Result<(), MessageError> {
    let refusal = |why: &str| Err(MessageError::NotAMessage(why.to_owned()));
    let Some(fields) = value.as_object() else {
        return refusal(&format!("it is {}", json_type(value)));
    };
    if fields.get("jsonrpc").is_none_or(|version| version != "2.0") {
        return refusal("its `jsonrpc` is not \"2.0\"");
    }
    let has_method = fields.get("method").is_some_and(Value::is_string);
    if !has_method && !fields.contains_key("result") && !fields.contains_key("error") {
        return refusal("it has neither `method` nor `result` nor `error`");
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)]
mod tests {
    use rmcp::model::ServerResult;
    use serde_json::json;
    use toolwit_core::limits::DESCRIPTION_CHARS_MAX;

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
            json!({"resultType": "complete", "tools": [valid_tool, {"title": "bad"}, 7, {"name": 3, "inputSchema": {}}]}),
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
        let long_type = format!("a-secret-{}", "x".repeat(100));
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
            MessageError::NotAMessage("it is a string".to_owned()),
            "a string counts as one part, whatever it contains"
        );
        assert!(matches!(parse(b"hello").unwrap_err(), MessageError::NotJson(_)));
        assert!(matches!(
            parse("[".repeat(200).as_bytes()).unwrap_err(),
            MessageError::NotJson(_)
        ));
    }

    #[test]
    fn the_deepest_part_of_a_schema_is_cut_and_a_result_that_is_too_deep_is_refused() {
        let deep = (0..400).fold(
            json!({"type": "string"}),
            |schema, _| json!({"type": "object", "properties": {"x": schema}}),
        );
        let listed =
            result(json!({"tools": [{"name": "deep", "inputSchema": deep}, {"name": "flat", "inputSchema": {}}]}));
        let ServerResult::ListToolsResult(list) = listed else {
            panic!("{listed:?}");
        };
        assert_eq!(list.tools.len(), 2);
        let deep = format!(
            r#"{{"jsonrpc": "2.0", "id": 1, "result": {{"content": [], "structuredContent": {}1{}}}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        assert_eq!(parse(deep.as_bytes()).unwrap_err(), MessageError::TooDeep);
    }

    #[test]
    fn invalid_parts_of_an_answer_are_repaired() {
        let initialized = result(
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": null}, "serverInfo": {"name": "a", "version": 1.2}}),
        );
        assert!(
            matches!(initialized, ServerResult::InitializeResult(_)),
            "{initialized:?}"
        );
        let without_info = result(json!({"protocolVersion": "2025-11-25", "capabilities": null}));
        assert!(
            matches!(without_info, ServerResult::InitializeResult(_)),
            "{without_info:?}"
        );
        for content in [json!("text"), json!({"type": "text", "text": "text"})] {
            let ServerResult::CallToolResult(call_result) = result(json!({"content": content, "isError": null})) else {
                panic!("{content}");
            };
            assert_eq!(call_result.content[0].as_text().unwrap().text, "text");
        }
        for error in [
            json!("no"),
            json!({"message": "no"}),
            json!({"code": "E1", "message": "no"}),
        ] {
            let text = json!({"jsonrpc": "2.0", "id": 1, "error": error}).to_string();
            match parse(text).unwrap() {
                ServerJsonRpcMessage::Error(error) => assert_eq!(error.error.message, "no"),
                other => panic!("{other:?}"),
            }
        }
        let batch = json!([{"jsonrpc": "2.0", "id": 1, "result": {"content": []}}]).to_string();
        parse(format!("\u{feff}{batch}")).unwrap();
        for (text, why) in [
            (r#"{"jsonrpc": "2.0", "id": 1}"#, "neither"),
            (r#"{"id": 1, "result": {}}"#, "`jsonrpc`"),
            (r#"{"jsonrpc": "2.0", "id": 1, "result": {"n": NaN}}"#, "not JSON"),
            ("[]", "an array"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
