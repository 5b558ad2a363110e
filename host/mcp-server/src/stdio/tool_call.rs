//! The direct conversion of `tools/call` requests.

use std::borrow::Cow;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, JsonObject, JsonRpcMessage,
    JsonRpcRequest, NumberOrString, RequestMetaObject,
};
use serde::Deserialize;
use serde_json::Value;

/// A request with an id and a method without JSON escapes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallMessage<'l> {
    jsonrpc: &'l str,
    id: CallId<'l>,
    method: &'l str,
    params: JsonObject,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CallId<'l> {
    Number(i64),
    Text(&'l str),
}

/// Converts a `tools/call` request. Returns `None` for every other line, valid or not, and for a call with unusual
/// parameters. The protocol library converts these lines.
///
/// The protocol library tries one message type after the other and copies the arguments, which takes several times as
/// long. The result is the same.
pub(super) fn tool_call(line: &[u8]) -> Option<ClientJsonRpcMessage> {
    // Serde would also read an array as the fields of `CallMessage`, in their order.
    if line.first() != Some(&b'{') {
        return None;
    }
    let CallMessage {
        jsonrpc: "2.0",
        id,
        method: "tools/call",
        mut params,
    } = serde_json::from_slice(line).ok()?
    else {
        return None;
    };
    let is_usual = params.iter().all(|(key, value)| match key.as_str() {
        "name" => value.is_string(),
        "arguments" | "_meta" => value.is_object(),
        _ => false,
    });
    if !is_usual {
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
        CallId::Number(number) => NumberOrString::Number(number),
        CallId::Text(text) => NumberOrString::String(text.into()),
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

    fn convert(message: &Value) -> Option<ClientJsonRpcMessage> {
        tool_call(message.to_string().as_bytes())
    }

    #[test]
    fn a_call_is_converted_as_the_protocol_library_converts_it() {
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
            let converted = convert(&message).unwrap();
            assert_eq!(
                serde_json::to_value(&converted).unwrap(),
                serde_json::to_value(&expected).unwrap()
            );
            let JsonRpcMessage::Request(converted) = converted else {
                unreachable!()
            };
            let ClientRequest::CallToolRequest(call) = converted.request else {
                unreachable!()
            };
            let meta = call.extensions.get::<RequestMetaObject>().map(|meta| json!(meta));
            assert_eq!(meta.as_ref(), params.get("_meta"), "{message}");
        }
    }

    #[test]
    fn every_other_message_is_left_to_the_protocol_library() {
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
            assert!(convert(&message).is_none(), "{message}");
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
            assert!(tool_call(line.as_bytes()).is_none(), "{line}");
        }
    }
}
