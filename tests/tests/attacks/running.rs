//! Grants that change while a call runs.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::host::{Setup, TestHost};
use crate::nesting::FETCH;
use crate::reach::{BURN, conversation, may_call};
use crate::server::{Answer, Server};

/// A server whose responses wait for a signal of the test.
struct HeldServer {
    server: Server,
    gate: Arc<Semaphore>,
}

impl HeldServer {
    async fn start() -> Self {
        let gate = Arc::new(Semaphore::new(0));
        let server = Server::start(Answer::Held(gate.clone())).await;
        Self { server, gate }
    }

    fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.server.port)
    }

    fn http_grant(&self) -> String {
        format!(
            "http = [{{ host = \"127.0.0.1\", scheme = \"http\", port = {} }}]",
            self.server.port
        )
    }

    /// Calls a tool whose first request waits here, changes the grants meanwhile, then releases all requests.
    async fn call_while_changing(&self, host: &TestHost, lines: &str, tool: &str, arguments: Value) -> Value {
        let change = async {
            while self.server.requests().is_empty() {
                tokio::task::yield_now().await;
            }
            host.regrant(lines);
            self.gate.add_permits(Semaphore::MAX_PERMITS / 2);
        };
        let (value, ()) = tokio::join!(host.value(tool, arguments), change);
        value
    }
}

// attack: D7
#[tokio::test]
async fn running_call_keeps_a_revoked_grant_and_the_next_call_does_not() {
    let held = HeldServer::start().await;
    let host = Setup::new().grant(&held.http_grant()).start().await;
    let three_requests = json!({"authority": held.authority(), "times": 3});
    let answered = held
        .call_while_changing(&host, "", "hammer", three_requests.clone())
        .await;
    assert_eq!(answered, 3, "the requests after the revocation belong to the same call");
    assert_eq!(host.value("hammer", three_requests).await, 0);
    assert_eq!(held.server.connections(), 3);
}

// attack: D7
#[tokio::test]
async fn grant_added_during_a_call_applies_to_the_next_one() {
    let held = HeldServer::start().await;
    let host = conversation(Setup::new().grant(&held.http_grant())).await;
    let extended_grants = format!("{}\n{}", held.http_grant(), may_call(&[BURN]));
    let both = json!({"authority": held.authority(), "tool": BURN, "arguments": "{\"rounds\": 1}", "times": 1});
    let results = held
        .call_while_changing(&host, &extended_grants, "fetch_and_relay", both.clone())
        .await;
    assert_eq!(results[0], "200");
    assert!(results[1].as_str().unwrap().starts_with("denied: "), "{results}");
    let results = host.value("fetch_and_relay", both).await;
    assert!(!results[1].as_str().unwrap().starts_with("denied: "), "{results}");
}

// attack: D7
#[tokio::test]
async fn nested_call_that_starts_after_a_revocation_lacks_the_grant() {
    let held = HeldServer::start().await;
    let calls = may_call(&[FETCH]);
    let host = conversation(Setup::new().grant(&format!("{calls}\n{}", held.http_grant()))).await;
    let fetch = json!({"method": "GET", "scheme": "http", "authority": held.authority(), "path": "/", "headers": [], "body": ""});
    let both = json!({"authority": held.authority(), "tool": FETCH, "arguments": fetch.to_string(), "times": 1});
    let results = held.call_while_changing(&host, &calls, "fetch_and_relay", both).await;
    assert_eq!(results[0], "200", "the outer call keeps its grant");
    assert!(results[1].as_str().unwrap().starts_with("denied: "), "{results}");
    assert_eq!(held.server.connections(), 1);
}
