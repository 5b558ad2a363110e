//! A parser of `tools/call` requests that is faster than the parser of the protocol library (`rmcp`).

use std::borrow::Cow;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, JsonObject, JsonRpcMessage,
    JsonRpcRequest, NumberOrString, RequestMetaObject,
};
use serde::Deserialize;
use serde_json::Value;

/// A JSON-RPC request with texts that are borrowed from its line. Deserialization fails if such a text has JSON escapes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BorrowedRequest<'l> {
    jsonrpc: &'l str,
    id: BorrowedId<'l>,
    method: &'l str,
    params: JsonObject,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum BorrowedId<'l> {
    Number(i64),
    Text(&'l str),
}

/// Parses a line with a `tools/call` request that has no other parameters than `name`, `arguments` and `_meta`. Returns
/// `None` for every other line, whether it is valid or not. Also returns `None` for such a request if the line does not
/// start with `{`, or if the method or the id has a JSON escape. The protocol library must then parse the line.
///
/// The protocol library would return the same message for the call. It takes several times as long, because it tries
/// one message type after the other and copies the arguments.
pub(super) fn parse_tool_call(line: &[u8]) -> Option<ClientJsonRpcMessage> {
    // Serde would also deserialize `BorrowedRequest` from an array of its fields.
    if line.first() != Some(&b'{') {
        return None;
    }
    let BorrowedRequest {
        jsonrpc: "2.0",
        id,
        method: "tools/call",
        mut params,
    } = serde_json::from_slice(line).ok()?
    else {
        return None;
    };
    let has_only_known_params = params.iter().all(|(key, value)| match key.as_str() {
        "name" => value.is_string(),
        "arguments" | "_meta" => value.is_object(),
        _ => false,
    });
    if !has_only_known_params {
        return None;
    }
    let Value::String(name) = params.get_mut("name")?.take() else {
        return None;
    };
    let mut call = CallToolRequestParams::new(Cow::Owned(name));
    call.arguments = params.get_mut("arguments").and_then(take_object);
    let mut request = CallToolRequest::new(call);
    if let Some(meta) = params.get_mut("_meta").and_then(take_object) {
        request.extensions.insert(RequestMetaObject::from(meta));
    }
    let id = match id {
        BorrowedId::Number(number) => NumberOrString::Number(number),
        BorrowedId::Text(text) => NumberOrString::String(text.into()),
    };
    let request = JsonRpcRequest::new(id, ClientRequest::CallToolRequest(request));
    Some(JsonRpcMessage::Request(request))
}

fn take_object(value: &mut Value) -> Option<JsonObject> {
    match value.take() {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(message: &Value) -> Option<ClientJsonRpcMessage> {
        parse_tool_call(message.to_string().as_bytes())
    }

    #[test]
    fn a_call_is_parsed_as_by_the_protocol_library() {
        let calls = [
            json!({"name": "a"}),
            json!({"arguments": {}, "name": ""}),
            json!({"name": "a", "arguments": {"b": [1, 2.5, null, {"c": "é"}], "_meta": {"d": true}, "name": "e"}}),
            json!({"name": "a", "_meta": {}}),
            json!({"_meta": {"progressToken": 7, "x": {"y": []}}, "name": "a", "arguments": {"z": 0}}),
        ];
        for (params, id) in calls
            .iter()
            .zip([json!(1), json!("1"), json!(-5), json!(""), json!(i64::MAX)])
        {
            let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            let expected: ClientJsonRpcMessage = serde_json::from_value(message.clone()).unwrap();
            let parsed = parse(&message).unwrap();
            assert_eq!(
                serde_json::to_value(&parsed).unwrap(),
                serde_json::to_value(&expected).unwrap()
            );
            let JsonRpcMessage::Request(request) = parsed else {
                unreachable!()
            };
            let ClientRequest::CallToolRequest(call) = request.request else {
                unreachable!()
            };
            let meta = call.extensions.get::<RequestMetaObject>().map(|meta| json!(meta));
            assert_eq!(meta.as_ref(), params.get("_meta"), "{message}");
        }
    }

    #[test]
    fn every_other_line_is_left_to_the_protocol_library() {
        let request =
            |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let messages = [
            request("tools/list", json!({})),
            request("tools/call", json!({})),
            request("tools/call", json!({"arguments": {}})),
            request("tools/call", json!({"name": 7})),
            request("tools/call", json!({"name": "a", "arguments": []})),
            request("tools/call", json!({"name": "a", "arguments": null})),
            request("tools/call", json!({"name": "a", "requestState": "s"})),
            request("tools/call", json!({"name": "a", "_meta": 1})),
            request("tools/call", json!([])),
            json!({"jsonrpc": "1.0", "id": 1, "method": "tools/call", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "id": null, "method": "tools/call", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "id": u64::MAX, "method": "tools/call", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "id": 1.5, "method": "tools/call", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}, "result": {}}),
            json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "a"}, "result": {}}),
            json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        ];
        for message in messages {
            assert!(parse(&message).is_none(), "{message}");
        }
        let lines = [
            "",
            "{",
            r#"["2.0",1,"tools/call",{"name":"a"}]"#,
            r#" {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}} {}"#,
        ];
        for line in lines {
            assert!(parse_tool_call(line.as_bytes()).is_none(), "{line}");
        }
    }
}
