//! The server as its clients see it: lines of JSON, and HTTP requests.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod access_tokens;
mod approvals;
mod client_requests;
mod connections;
mod content;
mod ended_input;
mod http;
mod http_clients;
mod interfaces;
mod line_client;
mod lost_clients;
mod notifications;
mod protocol;
mod questions;
mod session_handles;
mod session_limits;
mod sessions;
mod tasks;
mod token_issuer;
mod unread_answers;
mod work_after_answer;

use std::sync::Arc;

use serde_json::json;
use toolwit::tool::{NativeEntity, NoArguments, ToolDefinition, ToolId, ToolResult};
use toolwit::{NativeTool, Tool, Toolwit};
use toolwit_mcp_server::McpServer;

/// Tools that need no plugin: each shows one behaviour of a call.
fn tools() -> Vec<Arc<dyn Tool>> {
    let object = || json!({"type": "object", "properties": {}});
    let hello = NativeTool::new("hello", "Greets.", object(), |_, _| async {
        Ok(ToolResult::text("hello"))
    });
    let numbers = ToolDefinition::typed::<NoArguments>(ToolId::native("numbers"), "numbers", "Returns numbers.");
    let numbers = numbers.with_output_schema(json!({"type": "array", "items": {"type": "integer"}}));
    let numbers = NativeTool::from_definition(numbers, |_, _| async { Ok(ToolResult::value(json!([1, 2, 3]))) });
    let steps = NativeTool::new("steps", "Reports progress.", object(), |_, context| async move {
        for step in ["one", "two", "three"] {
            context.output().progress(step);
        }
        context.output().communicate("for the user");
        Ok(ToolResult::text(context.text("traceparent").unwrap_or("untraced")))
    });
    let wait = NativeTool::new(
        "wait",
        "Waits until it is cancelled.",
        object(),
        |_, context| async move {
            context.cancel_token().cancelled().await;
            Ok(ToolResult::text("stopped"))
        },
    );
    let fail = NativeTool::new("fail", "Fails.", object(), |_, _| async {
        Ok(ToolResult::error("out of paper"))
    });
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "integer"}}},
        "additionalProperties": false,
    });
    let add = NativeTool::new("add", "Adds.", schema, |arguments: toolwit::Arguments, _| async move {
        let items = arguments
            .get("b")
            .and_then(|b| b.as_array().cloned())
            .unwrap_or_default();
        let numbers = items
            .iter()
            .chain(arguments.get("a"))
            .filter_map(serde_json::Value::as_i64);
        Ok(ToolResult::text(numbers.sum::<i64>().to_string()))
    });
    let panics = NativeTool::new("panics", "Panics.", object(), |_, _| async {
        panic!("a bug of the tool")
    });
    let cart = NativeTool::new("open_cart", "Opens a cart.", object(), |_, _| async {
        let cart = NativeEntity::new("cart", Arc::new(())).with_id("c-1");
        let cart = cart.method("count", "Counts the items.", |_, _: NoArguments, _| async {
            Ok::<_, toolwit::ToolError>(7)
        });
        let cart = cart.map_err(toolwit::ToolError::Operator)?;
        let value = json!({"type": "cart", "id": "c-1", "available_tools": []});
        Ok(ToolResult::value(value).with_provider(Arc::new(cart)))
    });
    let tools = [hello, numbers, steps, wait, fail, add, panics, cart];
    tools
        .into_iter()
        .map(|tool| Arc::new(tool.unwrap()) as Arc<dyn Tool>)
        .collect()
}

async fn server() -> McpServer {
    let host = Toolwit::builder().tools(tools()).build().await.unwrap();
    McpServer::new(host)
}
