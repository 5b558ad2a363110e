//! A tool that can be called only as a task, as in revision 2025-11-25.

use serde_json::{Value, json};

use crate::{Server, answer, refuse};

/// Handles a request of the behaviour `tasks`. Returns whether the request was handled.
pub(crate) fn receive(server: &mut Server, method: &str, id: &Value, parameters: &Value) -> bool {
    if !server.is("tasks") {
        return false;
    }
    // The id of a task is the text of its call.
    let task_id = parameters["taskId"].as_str().unwrap_or_default();
    match method {
        "tools/list" => {
            let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
            let slow = json!({"name": "slow", "inputSchema": schema, "execution": {"taskSupport": "required"}});
            answer(id, &json!({"tools": [slow]}));
        }
        "tools/call" if parameters["task"]["ttl"].is_u64() => {
            server.calls = 0;
            answer(id, &json!({"task": task(&parameters["arguments"]["text"], "working")}));
        }
        "tools/call" => refuse(id, -32601, "the tool requires a task"),
        "tasks/get" => {
            server.calls += 1;
            let end = match task_id {
                "fail" => "failed",
                "cancel" => "cancelled",
                _ => "completed",
            };
            let status = if server.calls < 3 { "working" } else { end };
            answer(id, &task(&parameters["taskId"], status));
        }
        "tasks/result" => {
            let content = json!([{"type": "text", "text": task_id}]);
            answer(id, &json!({"content": content, "isError": task_id == "fail"}));
        }
        _ => return false,
    }
    true
}

fn task(id: &Value, status: &str) -> Value {
    json!({
        "taskId": id, "status": status, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttl": 60_000, "pollInterval": 50,
    })
}
