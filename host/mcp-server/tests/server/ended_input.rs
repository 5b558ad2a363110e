//! Calls that run when the input of their client ends.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolwit::tool::ToolResult;
use toolwit::{NativeTool, Toolwit};
use toolwit_mcp_server::McpServer;

use crate::line_client::LineClient;

/// A server with a tool that takes some seconds, unless it is cancelled.
async fn slow(seconds: u64) -> McpServer {
    let schema = json!({"type": "object", "properties": {}});
    let slow = NativeTool::new("slow", "Takes its time.", schema, move |_, context| async move {
        tokio::select! {
            () = context.cancel_token().cancelled() => Ok(ToolResult::text("cancelled")),
            () = tokio::time::sleep(Duration::from_secs(seconds)) => Ok(ToolResult::text("done")),
        }
    });
    let host = Toolwit::builder().tool(slow.unwrap()).build().await.unwrap();
    McpServer::new(host)
}

fn texts(messages: &[Value]) -> Vec<&str> {
    let answers = messages.iter().filter(|message| message["id"] == "call");
    answers
        .filter_map(|message| message["result"]["content"][0]["text"].as_str())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_has_some_seconds_after_the_end_of_the_input() {
    for (seconds, expected) in [(4, "done"), (60, "cancelled")] {
        let mut client = LineClient::session_with(slow(seconds).await, json!({})).await;
        client.send_call("slow").await;
        assert_eq!(texts(&client.finish().await), [expected], "{seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_end_when_the_server_is_stopped() {
    let stop = CancellationToken::new();
    let mut client = LineClient::stopped_by(slow(60).await, stop.clone());
    client.begin_session(json!({})).await;
    let started = tokio::time::Instant::now();
    client.send_call("slow").await;
    // The call has begun when a later request is answered.
    client.request("ping", "ping", json!({})).await;
    stop.cancel();
    assert_eq!(texts(&client.finish().await), ["cancelled"]);
    assert!(started.elapsed() < Duration::from_secs(5));
}
