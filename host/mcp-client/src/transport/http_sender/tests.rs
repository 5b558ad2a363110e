#![allow(clippy::unwrap_used)]

use tokio::net::TcpListener;

use serde_json::{Value, json};

use super::super::failure_code::NOT_PROCESSED;
use super::*;

fn sender(wall_max: Duration) -> HttpSender {
    HttpSender::new(false, HeaderMap::new(), wall_max, Redaction::default()).unwrap()
}

fn address(listener: &TcpListener) -> Arc<str> {
    format!("http://{}/mcp", listener.local_addr().unwrap()).into()
}

// attack: G9
#[tokio::test]
async fn a_stream_ends_if_its_response_does_not_begin() {
    // The operating system accepts the connection, but nothing answers the request.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let sender = sender(Duration::from_millis(50));
    let events = sender.get_stream(address(&listener), None, None, None, HashMap::new());
    assert_eq!(events.await.unwrap().count().await, 0);
}

#[tokio::test]
async fn a_call_without_a_connection_is_reported_as_not_processed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = address(&listener);
    drop(listener);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}});
    let message: ClientJsonRpcMessage = serde_json::from_value(message).unwrap();
    let sender = sender(Duration::from_secs(10));
    let mut events = sender.deferred_response(uri, message, RequestId::Number(1), None, HashMap::new());
    let event = events.next().await.unwrap().unwrap();
    let answer: Value = serde_json::from_str(&event.data.unwrap()).unwrap();
    assert_eq!(answer["error"]["code"], NOT_PROCESSED);
}
