//! Long calls as tasks.

use serde_json::{Value, json};
use toolwit::tool::ToolResult;
use toolwit::{NativeTool, Toolwit};
use toolwit_mcp_server::{McpServer, Principal, TaskSupport};

use crate::line_client::{LineClient, meta};
use crate::server;

fn with_tasks(mut params: Value) -> Value {
    params["_meta"] = meta();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    params
}

async fn call(client: &mut LineClient, tool: &str) -> Value {
    let params = with_tasks(json!({"name": tool, "arguments": {}}));
    client.request("call", "tools/call", params).await
}

#[tokio::test(start_paused = true)]
async fn long_call_becomes_a_task_and_its_cancellation_stops_the_tool() {
    let mut client = LineClient::connected_to(server().await);
    let short = call(&mut client, "hello").await;
    assert_eq!(short["result"]["resultType"], "complete", "{short}");
    let long = call(&mut client, "wait").await;
    assert_eq!(long["result"]["resultType"], "task", "{long}");
    let id = json!({"taskId": long["result"]["taskId"]});
    let working = client.request("get", "tasks/get", with_tasks(id.clone())).await;
    assert_eq!(working["result"]["status"], "working", "{working}");
    client.request("cancel", "tasks/cancel", with_tasks(id.clone())).await;
    let mut state = Value::Null;
    while state["result"]["status"] != "cancelled" {
        tokio::task::yield_now().await;
        state = client.request("get", "tasks/get", with_tasks(id.clone())).await;
        assert_ne!(state["result"]["status"], "failed", "{state}");
    }
}

#[tokio::test]
async fn unknown_task_and_undeclared_extension_are_errors() {
    let mut client = LineClient::connected_to(server().await);
    let unknown = client
        .request("1", "tasks/get", with_tasks(json!({"taskId": "none"})))
        .await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let undeclared = json!({"taskId": "none", "_meta": meta()});
    let undeclared = client.request("2", "tasks/get", undeclared).await;
    assert_eq!(undeclared["error"]["code"], -32021, "{undeclared}");
}

/// A server whose only tool needs a task.
async fn job() -> McpServer {
    let job = NativeTool::new("job", "Works.", json!({"type": "object"}), |_, _| async {
        Ok(ToolResult::text("done"))
    });
    let host = Toolwit::builder().tool(job.unwrap()).build().await.unwrap();
    McpServer::for_principal(Principal::new("local", host).with_task_support(|_| TaskSupport::Required))
}

#[tokio::test]
async fn tool_that_needs_a_task_refuses_other_clients() {
    let mut client = LineClient::connected_to(job().await);
    let refused = json!({"name": "job", "arguments": {}, "_meta": meta()});
    let refused = client.request("1", "tools/call", refused).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let task = call(&mut client, "job").await;
    let id = json!({"taskId": task["result"]["taskId"]});
    let mut state = Value::Null;
    while state["result"]["status"] != "completed" {
        state = client.request("2", "tasks/get", with_tasks(id.clone())).await;
        assert!(state["error"].is_null(), "{state}");
    }
    assert_eq!(state["result"]["result"]["content"][0]["text"], "done", "{state}");
}
