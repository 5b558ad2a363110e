//! Parses incoming lines, with checks that the types of the protocol library (`rmcp`) do not make.

use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, ProtocolVersion, RequestMetaObject};
use serde_json::{Value, json};

use super::tool_call::parse_tool_call;
use toolwit::limits::MCP_REQUEST_PARTS_MAX;
use toolwit::tool::text::json_part_count;

/// A line of the input, after its checks.
#[derive(Debug)]
pub(super) enum IncomingLine {
    /// A message for the server. If it is a request, `request_id` is its id as JSON text.
    Message {
        message: Box<ClientJsonRpcMessage>,
        request_id: Option<String>,
    },
    /// A message that is refused with this answer.
    Refused(Value),
    /// An empty line, or a notification or a response with invalid contents. The line needs no answer.
    Ignored,
}

/// Returns the error response to a message.
pub(super) fn refusal(id: Value, code: ErrorCode, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code.0, "message": message}})
}

/// Parses and checks a line.
pub(super) fn parse(line: &[u8]) -> IncomingLine {
    if line.iter().all(u8::is_ascii_whitespace) {
        return IncomingLine::Ignored;
    }
    let refused = |id: &Value, code, message: &str| IncomingLine::Refused(refusal(id.clone(), code, message));
    if json_part_count(line) > MCP_REQUEST_PARTS_MAX {
        let message = format!("a message is limited to {MCP_REQUEST_PARTS_MAX} JSON values and names");
        return refused(&Value::Null, ErrorCode::INVALID_REQUEST, &message);
    }
    if let Some(call) = parse_tool_call(line) {
        return IncomingLine::Message {
            request_id: request_id(&call),
            message: Box::new(call),
        };
    }
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return refused(&Value::Null, ErrorCode::PARSE_ERROR, "the line is not valid JSON");
    };
    let Some(fields) = value.as_object() else {
        let message = if value.is_array() {
            "batches are not supported: send one message a line"
        } else {
            "a message must be an object"
        };
        return refused(&Value::Null, ErrorCode::INVALID_REQUEST, message);
    };
    let id = fields.get("id");
    let valid_id = id.filter(|id| id.is_string() || id.is_i64() || id.is_u64());
    let answer_id = valid_id.cloned().unwrap_or(Value::Null);
    let invalid = |message: &str| refused(&answer_id, ErrorCode::INVALID_REQUEST, message);
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid("`jsonrpc` must be \"2.0\"");
    }
    if id.is_some() && valid_id.is_none() {
        return invalid("`id` must be a string or an integer");
    }
    match fields.get("method") {
        None if fields.contains_key("result") || fields.contains_key("error") => {}
        None => return invalid("`method` is missing"),
        Some(Value::String(_)) => {}
        Some(_) => return invalid("`method` must be a string"),
    }
    let is_request = id.is_some() && fields.contains_key("method");
    if fields.get("params").is_some_and(|params| !params.is_object()) {
        return if is_request {
            refused(&answer_id, ErrorCode::INVALID_PARAMS, "`params` must be an object")
        } else {
            IncomingLine::Ignored
        };
    }
    let request_id = is_request.then(|| answer_id.to_string());
    match serde_json::from_value::<ClientJsonRpcMessage>(value) {
        Ok(message) => IncomingLine::Message {
            message: Box::new(message),
            request_id,
        },
        Err(_) if is_request => refused(&answer_id, ErrorCode::INVALID_REQUEST, "the request is invalid"),
        Err(_) => IncomingLine::Ignored,
    }
}

/// Returns the id of a request as JSON text.
fn request_id(message: &ClientJsonRpcMessage) -> Option<String> {
    match message {
        ClientJsonRpcMessage::Request(request) => serde_json::to_string(&request.id).ok(),
        _ => None,
    }
}

/// Returns the reason why a message cannot begin a connection. Returns `None` if the message is `initialize` or `ping`,
/// or has all required keys in `_meta`.
pub(super) fn beginning_error(line: &[u8]) -> Option<ErrorData> {
    let value: Value = serde_json::from_slice(line).unwrap_or_default();
    if matches!(value["method"].as_str(), Some("initialize" | "ping")) {
        return None;
    }
    let meta = &value["params"]["_meta"];
    let meta: RequestMetaObject = serde_json::from_value(meta.clone()).unwrap_or_default();
    let missing = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28);
    if missing.is_empty() {
        return None;
    }
    let is_discovery = value["method"] == "server/discover";
    let has_version = meta.protocol_version().is_some();
    if is_discovery || has_version {
        let missing = missing.join(", ");
        return Some(ErrorData::invalid_params(format!("`_meta` lacks {missing}"), None));
    }
    let message = "send `initialize` first, or declare the protocol version in `_meta`";
    Some(ErrorData::invalid_request(message, None))
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    fn error_code(line: &str) -> Value {
        match parse(line.as_bytes()) {
            IncomingLine::Refused(answer) => answer["error"]["code"].clone(),
            other => panic!("{other:?}"),
        }
    }

    // attack: G3
    #[test]
    fn malformed_messages_are_answered_with_the_code_of_their_defect() {
        let cases = [
            ("{", -32700),
            ("\u{0}", -32700),
            ("[]", -32600),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
            ("5", -32600),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
            (r#"{"id":1,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#, -32700),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#, -32602),
        ];
        for (line, expected) in cases {
            assert_eq!(error_code(line), expected, "{line}");
        }
        let nested = "[".repeat(100_000);
        assert_eq!(error_code(&nested), -32700);
        match parse(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}") {
            IncomingLine::Refused(answer) => assert_eq!(answer["error"]["code"], -32700),
            other => panic!("{other:?}"),
        }
    }

    // attack: G10
    #[test]
    fn a_message_of_too_many_parts_is_refused_before_it_is_parsed() {
        let call = |items: usize| {
            let items = vec!["{}"; items].join(",");
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","arguments":{{"a":[{items}]}}}}}}"#
            )
        };
        assert!(matches!(parse(call(60_000).as_bytes()), IncomingLine::Message { .. }));
        assert_eq!(error_code(&call(70_000)), -32600);
        let broken = "[".repeat(MCP_REQUEST_PARTS_MAX + 1);
        assert_eq!(error_code(&broken), -32600, "the message is not parsed");
    }

    // attack: G3
    #[test]
    fn requests_notifications_and_answers_pass() {
        let request_id_of = |line: &str| match parse(line.as_bytes()) {
            IncomingLine::Message { request_id, .. } => request_id,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            request_id_of(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).as_deref(),
            Some("1")
        );
        assert_eq!(
            request_id_of(r#"{"jsonrpc":"2.0","id":"a","method":"x/y"}"#).as_deref(),
            Some("\"a\"")
        );
        assert_eq!(
            request_id_of(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
            None
        );
        assert_eq!(request_id_of(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#), None);
        assert!(matches!(parse(b"  \r"), IncomingLine::Ignored));
    }

    // attack: G2
    #[test]
    fn a_connection_begins_with_initialize_or_a_declared_version() {
        let error = |line: &str| beginning_error(line.as_bytes()).map(|error| error.code.0);
        assert_eq!(error(r#"{"method":"initialize"}"#), None);
        assert_eq!(error(r#"{"method":"tools/list"}"#), Some(-32600));
        assert_eq!(error(r#"{"method":"server/discover"}"#), Some(-32602));
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":
            {"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
        assert_eq!(
            error(&format!(r#"{{"method":"tools/list","params":{{"_meta":{meta}}}}}"#)),
            None
        );
    }
}
