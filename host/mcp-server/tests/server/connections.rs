//! Connections over HTTP, which callers share.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http::{Served, call_hello, host};
use toolwit_mcp_server::{AccessToken, HttpOptions, McpServer, Principal};

const ADA: &str = "ada-0123456789abcdef0123";
const BOB: &str = "bob-0123456789abcdef0123";

async fn serve(connections: usize) -> Served {
    let host = host().await;
    let token = |text, name: &str| AccessToken::new(text, Principal::new(name, host.clone())).unwrap();
    let ada = token(ADA, "ada").with_requests_per_minute(1);
    let options = HttpOptions::new(([127, 0, 0, 1], 0).into()).with_connections_max(connections);
    let options = options.with_token(ada).with_token(token(BOB, "bob"));
    Served::of(McpServer::new(host.clone()), options).await
}

/// Opens a connection, sends an invalid request of a caller, and reads the beginning of its answer.
async fn keep_alive(served: &Served, token: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\n";
    let request = format!("{head}authorization: Bearer {token}\r\n\r\n{{}}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = [0; 64];
    let length = stream.read(&mut answer).await.unwrap();
    (stream, String::from_utf8_lossy(&answer[..length]).into_owned())
}

// attack: G17
#[tokio::test]
async fn idle_connections_of_a_limited_token_do_not_exclude_other_tokens() {
    const CONNECTIONS: usize = 16;
    let served = serve(CONNECTIONS).await;
    let mut idle = Vec::new();
    for number in 0..CONNECTIONS {
        let (stream, answer) = keep_alive(&served, ADA).await;
        let expected = if number == 0 { " 400 " } else { " 429 " };
        assert!(answer.contains(expected), "{answer}");
        idle.push(stream);
    }
    let bob = format!("\nauthorization: Bearer {BOB}");
    let session = served.session(&bob).await;
    let session = format!("{bob}\nmcp-session-id: {session}\nmcp-protocol-version: 2025-11-25");
    let answer = served.post(&session, &call_hello()).await;
    assert_eq!(answer.message()["result"]["content"][0]["text"], "hello");
    // The answers to the requests of `bob` took the places of the oldest idle connections.
    let mut rest = Vec::new();
    drop(idle[0].read_to_end(&mut rest).await);
    let (_stream, answer) = keep_alive(&served, ADA).await;
    assert!(answer.contains(" 429 "), "the other token is still answered: {answer}");
}

// attack: G17
#[tokio::test]
async fn metrics_count_towards_the_rate_of_their_caller() {
    let served = serve(8).await;
    let ada = format!("\nauthorization: Bearer {ADA}");
    assert_eq!(served.get("/metrics", &ada).await.status, 200);
    assert_eq!(served.get("/metrics", &ada).await.status, 429);
    let bob = format!("\nauthorization: Bearer {BOB}");
    assert_eq!(served.get("/metrics", &bob).await.status, 200);
    let calls = served.get("/metrics", &bob).await;
    assert!(
        !calls.message_text().contains("toolwit_mcp_tool_calls_total{"),
        "no call yet"
    );
    let session = served.session(&bob).await;
    let session = format!("{bob}\nmcp-session-id: {session}\nmcp-protocol-version: 2025-11-25");
    assert_eq!(served.post(&session, &call_hello()).await.status, 200);
    let unknown = crate::http::request("tools/call", json!({"name": "a\"b"}));
    assert_eq!(served.post(&session, &unknown).await.status, 200);
    let metrics = served.get("/metrics", &bob).await;
    for line in [
        "toolwit_mcp_tool_calls_total{tool=\"native#hello\",outcome=\"ok\"} 1",
        "toolwit_mcp_tool_calls_total{tool=\"other\",outcome=\"refused\"} 1",
    ] {
        assert!(metrics.message_text().contains(line), "{}", metrics.message_text());
    }
}
