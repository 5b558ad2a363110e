//! Parses the messages of a client, with checks that the types of the protocol library (`rmcp`) do not make.

use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, ErrorData, InitializeRequestParams, JsonRpcMessage, ProtocolVersion,
    RequestMetaObject,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::tool_call::parse_tool_call;
use toolwit::limits::MCP_REQUEST_PARTS_MAX;
use toolwit::tool::text::json_part_count;

/// The method that begins a session.
const INITIALIZE: &str = "initialize";

/// A message of a client, after its checks.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A message for the server. If it is a request, `request_id` is its id as JSON text.
    Message {
        message: Box<ClientJsonRpcMessage>,
        request_id: Option<String>,
    },
    /// A message that is refused with this answer.
    Refused(Value),
    /// No message, or a notification or a response with invalid contents. It needs no answer.
    Ignored,
}

/// Returns the error response to a message.
pub(crate) fn refusal(id: Value, code: ErrorCode, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code.0, "message": message}})
}

/// Returns the error response to a message.
pub(crate) fn error_answer(id: Value, error: &ErrorData) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

/// Returns the messages of a batch, which is a JSON array with at least one item. `None` for any other text.
pub(crate) fn batch_items(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let is_array = text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    if !is_array || json_part_count(text) > MCP_REQUEST_PARTS_MAX {
        return None;
    }
    let items: Vec<Value> = serde_json::from_slice(text).ok()?;
    let items = items
        .iter()
        .map(|item| item.to_string().into_bytes())
        .collect::<Vec<_>>();
    (!items.is_empty()).then_some(items)
}

/// Parses and checks the text of a message.
pub(crate) fn parse(line: &[u8]) -> Incoming {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Incoming::Ignored;
    }
    let refused = |id: &Value, code, message: &str| Incoming::Refused(refusal(id.clone(), code, message));
    if json_part_count(line) > MCP_REQUEST_PARTS_MAX {
        let message = format!("a message is limited to {MCP_REQUEST_PARTS_MAX} JSON values and names");
        return refused(&Value::Null, ErrorCode::INVALID_REQUEST, &message);
    }
    if let Some(call) = parse_tool_call(line) {
        return Incoming::Message {
            request_id: request_id(&call),
            message: Box::new(call),
        };
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(line) else {
        let id = id_of_unreadable(line).unwrap_or_default();
        return refused(&id, ErrorCode::PARSE_ERROR, "the message is not valid JSON");
    };
    if value.get("params").is_some_and(Value::is_null)
        && let Some(fields) = value.as_object_mut()
    {
        // Some clients write `null` for absent parameters.
        fields.shift_remove("params");
    }
    let Some(fields) = value.as_object() else {
        let message = if value.is_array() {
            "batches are a feature of revision 2025-03-26 only: send one message at a time"
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
            Incoming::Ignored
        };
    }
    if is_request && let Some(problem) = initialize_problem(fields) {
        return refused(&answer_id, ErrorCode::INVALID_PARAMS, &problem);
    }
    let request_id = is_request.then(|| answer_id.to_string());
    match serde_json::from_value::<ClientJsonRpcMessage>(value) {
        Ok(message) => Incoming::Message {
            message: Box::new(message),
            request_id,
        },
        Err(_) if is_request => refused(&answer_id, ErrorCode::INVALID_REQUEST, "the request is invalid"),
        Err(_) => Incoming::Ignored,
    }
}

/// Returns what is wrong in the parameters of an `initialize`. `None` for valid ones, and for other methods. The library would
/// treat an invalid one as a request of an unknown method.
fn initialize_problem(fields: &Map<String, Value>) -> Option<String> {
    if fields.get("method")? != INITIALIZE {
        return None;
    }
    let params = fields.get("params").unwrap_or(&Value::Null);
    if declares_stateless(params) {
        // A later check refuses the method itself.
        return None;
    }
    let error = InitializeRequestParams::deserialize(params).err()?;
    Some(format!("the parameters of `{INITIALIZE}` are invalid: {error}"))
}

/// Returns whether parameters declare a revision without sessions.
fn declares_stateless(params: &Value) -> bool {
    let meta = params.get("_meta").cloned().unwrap_or_default();
    let meta: RequestMetaObject = serde_json::from_value(meta).unwrap_or_default();
    let version = meta.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Returns the id of a request as JSON text.
fn request_id(message: &ClientJsonRpcMessage) -> Option<String> {
    match message {
        JsonRpcMessage::Request(request) => serde_json::to_string(&request.id).ok(),
        _ => None,
    }
}

/// Returns the id of a message that is not valid, such as one whose texts are no valid Unicode. `None` if it is not an object, or
/// has no valid id.
fn id_of_unreadable(line: &[u8]) -> Option<Value> {
    #[derive(Deserialize)]
    struct MessageId {
        id: Value,
    }
    // The other fields are skipped, and not decoded.
    let message: MessageId = serde_json::from_slice(line).ok()?;
    Some(message.id).filter(|id| id.is_string() || id.is_i64() || id.is_u64())
}

/// Returns whether a message leaves open how the connection begins: `ping` and `server/discover`.
pub(crate) fn is_bootstrap(line: &[u8]) -> bool {
    let message = serde_json::from_slice::<Value>(line).unwrap_or_default();
    matches!(message["method"].as_str(), Some("ping" | "server/discover"))
}

/// Returns the reason why a message cannot begin a connection. Returns `None` if the message is `initialize` or `ping`,
/// or has all required keys in `_meta`. At any other message, the protocol library (`rmcp`) could end the connection.
pub(crate) fn beginning_error(line: &[u8]) -> Option<ErrorData> {
    let value: Value = serde_json::from_slice(line).unwrap_or_default();
    let meta = &value["params"]["_meta"];
    let meta: RequestMetaObject = serde_json::from_value(meta.clone()).unwrap_or_default();
    let declared = meta.protocol_version();
    match value["method"].as_str() {
        Some("ping") => return None,
        Some(INITIALIZE) => {
            let is_stateless = declares_stateless(&value["params"]);
            return is_stateless.then(|| ErrorData::new(ErrorCode::METHOD_NOT_FOUND, INITIALIZE, None));
        }
        _ => {}
    }
    if let Some(version) = declared.filter(|version| !ProtocolVersion::KNOWN_VERSIONS.contains(version)) {
        return Some(ErrorData::unsupported_protocol_version(
            version,
            ProtocolVersion::KNOWN_VERSIONS,
        ));
    }
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
            Incoming::Refused(answer) => answer["error"]["code"].clone(),
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
            (r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, -32602),
        ];
        for (line, expected) in cases {
            assert_eq!(error_code(line), expected, "{line}");
        }
        let nested = "[".repeat(100_000);
        assert_eq!(error_code(&nested), -32700);
        match parse(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}") {
            Incoming::Refused(answer) => assert_eq!(answer["error"]["code"], -32700),
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
        assert!(matches!(parse(call(60_000).as_bytes()), Incoming::Message { .. }));
        assert_eq!(error_code(&call(70_000)), -32600);
        let broken = "[".repeat(MCP_REQUEST_PARTS_MAX + 1);
        assert_eq!(error_code(&broken), -32600, "the message is not parsed");
    }

    // attack: G3
    #[test]
    fn requests_notifications_and_answers_pass() {
        let request_id_of = |line: &str| match parse(line.as_bytes()) {
            Incoming::Message { request_id, .. } => request_id,
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
        assert!(matches!(parse(b"  \r"), Incoming::Ignored));
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

    #[test]
    fn an_invalid_initialize_is_answered_with_what_is_wrong() {
        let refusal_of = |params: &str| {
            let line = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"initialize","params":{params}}}"#);
            match parse(line.as_bytes()) {
                Incoming::Refused(answer) => answer,
                other => panic!("{other:?}"),
            }
        };
        let client = r#""clientInfo":{"name":"c","version":"1"}"#;
        for (params, problem) in [
            (
                r#"{"protocolVersion":"2025-06-18","capabilities":{}}"#.to_owned(),
                "`clientInfo`",
            ),
            (
                format!(r#"{{"protocolVersion":"2025-06-18",{client}}}"#),
                "`capabilities`",
            ),
            (
                format!(r#"{{"protocolVersion":5,"capabilities":{{}},{client}}}"#),
                "expected a string",
            ),
            ("null".to_owned(), "invalid"),
        ] {
            let answer = refusal_of(&params);
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                (&json!(7), &json!(-32602)),
                "{answer}"
            );
            assert!(
                answer["error"]["message"]
                    .as_str()
                    .is_some_and(|text| text.contains(problem)),
                "{answer}"
            );
        }
    }

    #[test]
    fn absent_parameters_may_be_null_and_a_lone_surrogate_is_answered_with_the_id() {
        let listed = parse(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#);
        assert!(matches!(listed, Incoming::Message { .. }), "{listed:?}");
        let line =
            br#"{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"a","arguments":{"t":"\ud800"}}}"#;
        match parse(line) {
            Incoming::Refused(answer) => {
                assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("s"), &json!(-32700)))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_batch_has_at_least_one_message() {
        assert_eq!(
            batch_items(br#" [{"id": 1}, 2]"#),
            Some(vec![br#"{"id":1}"#.to_vec(), b"2".to_vec()])
        );
        for text in ["[]", "[", "{}", "5", ""] {
            assert_eq!(batch_items(text.as_bytes()), None, "{text}");
        }
    }
}
