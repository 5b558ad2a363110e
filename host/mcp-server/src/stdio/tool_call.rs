//! The conversion of `tools/call` requests.

use std::borrow::Cow;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, JsonObject, JsonRpcMessage,
    JsonRpcRequest, NumberOrString, RequestMetaObject,
};
use serde_json::Value;

/// The number of fields of a request: `jsonrpc`, `id`, `method` and `params`.
const REQUEST_FIELDS: usize = 4;

/// Converts a `tools/call` request, and takes its parameters. Returns `None` for another message, and for a request with
/// parameters that only some requests have: the message is then unchanged.
///
/// The protocol library finds the type of a message by trying one after the other, and copies the arguments. A call is the most
/// frequent request, so its conversion is direct. The result is the same.
pub(super) fn tool_call(message: &mut JsonObject) -> Option<ClientJsonRpcMessage> {
    if message.len() != REQUEST_FIELDS || message.get("method")? != "tools/call" {
        return None;
    }
    let id = match message.get("id")? {
        Value::String(id) => NumberOrString::String(id.as_str().into()),
        number => NumberOrString::Number(number.as_i64()?),
    };
    let params = message.get_mut("params")?.as_object_mut()?;
    let is_plain = params.iter().all(|(key, value)| match key.as_str() {
        "name" => value.is_string(),
        "arguments" | "_meta" => value.is_object(),
        _ => false,
    });
    if !is_plain {
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

    fn object(value: Value) -> JsonObject {
        serde_json::from_value(value).unwrap()
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
            let converted = tool_call(&mut object(message.clone())).unwrap();
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
    fn every_other_message_is_left_unchanged() {
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
            json!({"jsonrpc": "2.0", "id": u64::MAX, "method": "tools/call", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "id": 1.5, "method": "tools/call", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}, "result": {}}),
            json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "a"}, "result": {}}),
            json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        ];
        for message in messages {
            let mut read = object(message.clone());
            assert!(tool_call(&mut read).is_none(), "{message}");
            assert_eq!(json!(read), message);
        }
    }
}
