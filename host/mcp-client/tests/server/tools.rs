//! The tools of the server.

use serde_json::{Value, json};

use crate::{Server, answer, hostile, next_message, refuse, send, shop};

/// Returns the definitions of all tools.
pub(crate) fn all(server: &Server) -> Vec<Value> {
    let mut tools = vec![
        tool(
            "echo",
            "Returns its text.",
            json!({"text": {"type": "string"}}),
            &["text"],
        ),
        tool(
            "add",
            "Adds two numbers.",
            json!({"a": {"type": "integer"}, "b": {"type": "integer"}}),
            &["a", "b"],
        ),
        tool("fail", "Fails.", json!({}), &[]),
        tool(
            "count",
            "Reports progress.",
            json!({"to": {"type": "integer"}}),
            &["to"],
        ),
        tool("wait", "Waits until it is cancelled.", json!({}), &[]),
        tool("image", "Returns an image.", json!({}), &[]),
        tool("meta", "Returns the metadata of the call.", json!({}), &[]),
        tool("environment", "Returns its environment.", json!({}), &[]),
        tool("grow", "Adds a tool.", json!({}), &[]),
        tool("exit", "Ends the server.", json!({}), &[]),
    ];
    if server.has_grown {
        tools.push(tool("grown", "Was added.", json!({}), &[]));
    }
    tools
}

/// Returns the definition of a tool.
pub(crate) fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Value {
    let schema =
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    json!({"name": name, "description": description, "inputSchema": schema})
}

/// Answers a call.
pub(crate) fn call(server: &mut Server, id: &Value, parameters: &Value) {
    server.calls += 1;
    if hostile::call(server, id) || shop::call(server, id, parameters) {
        return;
    }
    let arguments = &parameters["arguments"];
    match parameters["name"].as_str().unwrap_or_default() {
        "echo" => text(id, arguments["text"].as_str().unwrap_or_default()),
        "add" => {
            let sum = arguments["a"].as_i64().unwrap_or_default() + arguments["b"].as_i64().unwrap_or_default();
            answer(
                id,
                &json!({"content": [{"type": "text", "text": sum.to_string()}], "structuredContent": {"sum": sum}}),
            );
        }
        "fail" => answer(
            id,
            &json!({"content": [{"type": "text", "text": "it failed"}], "isError": true}),
        ),
        "count" => {
            let to = arguments["to"].as_u64().unwrap_or_default();
            let token = &parameters["_meta"]["progressToken"];
            for step in 1..=to {
                let progress =
                    json!({"progressToken": token, "progress": step, "total": to, "message": format!("step {step}")});
                send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}));
            }
            text(id, "counted");
        }
        "wait" => wait(id),
        "image" => answer(
            id,
            &json!({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}),
        ),
        "meta" => {
            let mut meta = parameters["_meta"].as_object().cloned().unwrap_or_default();
            meta.remove("progressToken");
            answer(id, &json!({"content": [], "structuredContent": {"meta": meta}}));
        }
        "environment" => {
            #[allow(clippy::disallowed_methods, reason = "a test compares them")]
            let variables: serde_json::Map<_, _> = std::env::vars().map(|(name, value)| (name, value.into())).collect();
            answer(id, &json!({"content": [], "structuredContent": variables}));
        }
        "grow" => {
            server.has_grown = true;
            send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
            text(id, "grown");
        }
        "grown" if server.has_grown => text(id, "here"),
        "exit" => std::process::abort(),
        _ => refuse(id, -32602, "unknown tool"),
    }
}

pub(crate) fn text(id: &Value, text: &str) {
    answer(id, &json!({"content": [{"type": "text", "text": text}]}));
}

/// Reads until the request is cancelled.
fn wait(id: &Value) {
    while let Some(message) = next_message() {
        if message["method"] == "notifications/cancelled" && message["params"]["requestId"] == *id {
            break;
        }
    }
}
