//! Grants that change while a call runs.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::host::{Setup, TestHost};
use crate::nesting::FETCH;
use crate::reach::{BURN, conversation, may_call};
use crate::server::{Answer, Server};

/// A server that answers when it is told to.
struct Held {
    server: Server,
    gate: Arc<Semaphore>,
}

impl Held {
    async fn start() -> Self {
        let gate = Arc::new(Semaphore::new(0));
        let server = Server::start(Answer::Held(gate.clone())).await;
        Self { server, gate }
    }

    fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.server.port)
    }

    fn http(&self) -> String {
        format!(
            "http = [{{ host = \"127.0.0.1\", scheme = \"http\", port = {} }}]",
            self.server.port
        )
    }

    /// Calls a tool whose first request waits here; changes the grants meanwhile, and lets all requests through then.
    async fn change_during(&self, host: &TestHost, lines: &str, tool: &str, arguments: Value) -> Value {
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
async fn a_running_call_keeps_what_was_revoked_and_the_next_has_it_no_more() {
    let held = Held::start().await;
    let host = Setup::new().grant(&held.http()).start().await;
    let thrice = json!({"authority": held.authority(), "times": 3});
    let answered = held.change_during(&host, "", "hammer", thrice.clone()).await;
    assert_eq!(answered, 3, "the requests after the revocation are of the same call");
    assert_eq!(host.value("hammer", thrice).await, 0);
    assert_eq!(held.server.connections(), 3);
}

// attack: D7
#[tokio::test]
async fn a_running_call_has_nothing_of_what_is_granted_meanwhile() {
    let held = Held::start().await;
    let host = conversation(Setup::new().grant(&held.http())).await;
    let more = format!("{}\n{}", held.http(), may_call(&[BURN]));
    let both = json!({"authority": held.authority(), "tool": BURN, "arguments": "{\"rounds\": 1}", "times": 1});
    let told = held.change_during(&host, &more, "fetch_and_relay", both.clone()).await;
    assert_eq!(told[0], "200");
    assert!(told[1].as_str().unwrap().starts_with("denied: "), "{told}");
    let told = host.value("fetch_and_relay", both).await;
    assert!(!told[1].as_str().unwrap().starts_with("denied: "), "{told}");
}

// attack: D7
#[tokio::test]
async fn a_call_inside_a_running_one_begins_after_the_revocation() {
    let held = Held::start().await;
    let calls = may_call(&[FETCH]);
    let host = conversation(Setup::new().grant(&format!("{calls}\n{}", held.http()))).await;
    let fetch = json!({"method": "GET", "scheme": "http", "authority": held.authority(), "path": "/", "headers": [], "body": ""});
    let both = json!({"authority": held.authority(), "tool": FETCH, "arguments": fetch.to_string(), "times": 1});
    let told = held.change_during(&host, &calls, "fetch_and_relay", both).await;
    assert_eq!(told[0], "200", "the caller keeps what it had");
    assert!(told[1].as_str().unwrap().starts_with("denied: "), "{told}");
    assert_eq!(held.server.connections(), 1);
}
