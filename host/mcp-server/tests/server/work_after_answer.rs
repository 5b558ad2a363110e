//! Work that a tool leaves until its answer is delivered.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use toolwit::tool::{DeferredWork, ToolResult};
use toolwit::{NativeTool, ToolContext, Toolwit};
use toolwit_mcp_server::McpServer;

use crate::line_client::LineClient;

/// A step of a call of the tool `leave`.
#[derive(Debug, PartialEq)]
enum Step {
    Returned,
    WorkDone,
    WorkDropped,
}

/// Reports the end of the work.
struct Work {
    steps: mpsc::UnboundedSender<Step>,
    is_done: bool,
}

impl Drop for Work {
    fn drop(&mut self) {
        let step = if self.is_done {
            Step::WorkDone
        } else {
            Step::WorkDropped
        };
        drop(self.steps.send(step));
    }
}

/// A server with a tool that leaves work. The tool returns when the channel has a message.
async fn leaving(returns: oneshot::Receiver<()>) -> (McpServer, mpsc::UnboundedReceiver<Step>) {
    let (steps, received) = mpsc::unbounded_channel();
    let returns = Arc::new(Mutex::new(Some(returns)));
    let schema = json!({"type": "object", "properties": {}});
    let leave = NativeTool::new("leave", "Leaves work.", schema, move |_, context: ToolContext| {
        let (steps, returns) = (steps.clone(), returns.lock().unwrap().take().unwrap());
        async move {
            let left = Work {
                steps: steps.clone(),
                is_done: false,
            };
            let work = move || {
                let mut work = left;
                work.is_done = true;
            };
            DeferredWork::of(&context).unwrap().defer(work).unwrap();
            steps.send(Step::Returned).unwrap();
            tokio::select! {
                _ = returns => {}
                () = context.cancel_token().cancelled() => {}
            }
            Ok(ToolResult::text("left"))
        }
    });
    let host = Toolwit::builder().tool(leave.unwrap()).build().await.unwrap();
    (McpServer::new(host), received)
}

#[tokio::test]
async fn work_that_a_tool_leaves_is_done_after_its_answer() {
    let (returns, returned) = oneshot::channel();
    returns.send(()).unwrap();
    let (server, mut steps) = leaving(returned).await;
    // The answer is longer than the buffer, and therefore not sent until the client reads it.
    let mut client = LineClient::connected_with(server, 8);
    client.begin_session(json!({})).await;
    client.send_call("leave").await;
    assert_eq!(steps.recv().await, Some(Step::Returned));
    tokio::task::yield_now().await;
    assert!(steps.try_recv().is_err(), "the answer is not sent");
    let answer = client.next().await;
    assert_eq!(answer["result"]["content"][0]["text"], "left", "{answer}");
    assert_eq!(steps.recv().await, Some(Step::WorkDone));
}

#[tokio::test]
async fn work_of_a_cancelled_call_is_dropped_because_it_has_no_answer() {
    let (_returns, returned) = oneshot::channel();
    let (server, mut steps) = leaving(returned).await;
    let mut client = LineClient::connected_to(server);
    client.begin_session(json!({})).await;
    client.send_call("leave").await;
    assert_eq!(steps.recv().await, Some(Step::Returned));
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "call"}}))
        .await;
    assert_eq!(steps.recv().await, Some(Step::WorkDropped));
}
