//! Answers that a client does not read.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use toolwit::tool::ToolResult;
use toolwit::{NativeTool, Toolwit};
use toolwit_mcp_server::{AccessToken, HttpOptions, McpServer, Principal};

use crate::http::{Served, request};
use crate::line_client::LineClient;

/// The size of the result of the tool, in bytes.
const RESULT_BYTES: usize = 4 << 20;

/// The number of tokens of the server over HTTP, which share the memory of answers.
const TOKENS: usize = 12;

/// A server and its host, with a tool that returns a long text when it was called this often.
async fn verbose(calls: usize) -> (McpServer, Toolwit) {
    let barrier = Arc::new(Barrier::new(calls));
    let schema = json!({"type": "object", "properties": {}});
    let long = NativeTool::new("long", "Returns a long text.", schema, move |_, _| {
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            Ok(ToolResult::text("x".repeat(RESULT_BYTES)))
        }
    });
    let host = Toolwit::builder().tool(long.unwrap()).build().await.unwrap();
    (McpServer::new(host.clone()), host)
}

fn is_refused(answer: &Value) -> bool {
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    message.contains("earlier answers that the client has not read")
}

// attack: G11
#[tokio::test]
async fn answers_that_nobody_reads_are_limited_over_standard_output() {
    const CALLS: usize = 12;
    let mut client = LineClient::session_with(verbose(CALLS).await.0, json!({})).await;
    for id in 0..CALLS {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "long"}});
        client.send(&call).await;
    }
    let mut answers = Vec::new();
    for _ in 0..CALLS {
        answers.push(client.next().await);
    }
    let refused = answers.iter().filter(|answer| is_refused(answer)).count();
    // The limit of 64 MiB suffices for seven of these answers and their texts.
    assert!((1..CALLS).contains(&refused), "{refused}");
    assert_eq!(client.request("after", "ping", json!({})).await["result"], json!({}));
}

/// Sends a call of the tool, and does not read the answer.
async fn send_call(served: &Served, session: &str) -> TcpStream {
    let body = request("tools/call", json!({"name": "long"})).to_string();
    let types = "content-type: application/json\r\naccept: application/json, text/event-stream";
    let head = format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\n{types}\r\nconnection: close{session}");
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let message = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(message.as_bytes()).await.unwrap();
    stream
}

// attack: G11
#[tokio::test]
async fn answers_that_nobody_reads_are_limited_over_http() {
    const CALLS: usize = 8;
    let server = verbose(CALLS).await;
    let token = |number: usize| format!("token-{number:02}-0123456789abcdef");
    let options = (0..TOKENS).fold(HttpOptions::new(([127, 0, 0, 1], 0).into()), |options, number| {
        let principal = Principal::new(number.to_string(), server.1.clone());
        options.with_token(AccessToken::new(&token(number), principal).unwrap())
    });
    let served = Served::of(server.0, options).await;
    let authorization = format!("\nauthorization: Bearer {}", token(0));
    let mut streams = Vec::new();
    for _ in 0..CALLS {
        // Each call has a session of its own, so that no session waits for the reader of another answer.
        let session = served.session(&authorization).await;
        let session = format!("{authorization}\nmcp-session-id: {session}\nmcp-protocol-version: 2025-11-25");
        let session = session.replace('\n', "\r\n");
        streams.push(send_call(&served, &session).await);
    }
    let mut refused = 0;
    for stream in &mut streams {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        refused += usize::from(answer.contains("earlier answers that the client has not read"));
        assert!(answer.contains("\"id\":1"), "{} bytes", answer.len());
    }
    // The share of a token is at least 24 MiB, which suffices for two of these answers and their texts, and a large one.
    assert!((1..CALLS).contains(&refused), "{refused}");
}
