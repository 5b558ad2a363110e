//! HTTP: addresses, tokens, sessions and limits.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::line_client::meta;
use crate::{server, tools};
use toolwit::Toolwit;
use toolwit_mcp_server::{AccessToken, HttpListener, HttpOptions, McpServer, Principal, ProtectedResource};

const ADA: &str = "ada-0123456789abcdef0123";
const BOB: &str = "bob-0123456789abcdef0123";

pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    cancel: CancellationToken,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// A response: status, headers in lower case, and body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: String,
    body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = self.headers.lines().find(|line| line.starts_with(&format!("{name}:")));
        line.map(|line| line[name.len() + 1..].trim())
    }

    pub(crate) fn message_text(&self) -> &str {
        &self.body
    }

    /// Returns the last message of the body, which is JSON or a stream of events.
    pub(crate) fn message(&self) -> Value {
        let mut event = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .filter(|data| !data.trim().is_empty());
        let text = event.next_back().unwrap_or(&self.body);
        serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Returns the text of a chunked body.
fn joined_chunks(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        text.push_str(&rest[..length]);
        body = rest[length..].strip_prefix("\r\n").unwrap_or_default();
        if length == 0 {
            break;
        }
    }
    text
}

async fn serve(options: impl FnOnce(HttpOptions) -> HttpOptions) -> Served {
    let options = options(HttpOptions::new(([127, 0, 0, 1], 0).into()));
    Served::of(server().await, options).await
}

pub(crate) async fn host() -> Toolwit {
    Toolwit::builder().tools(tools()).build().await.unwrap()
}

impl Served {
    /// Serves a server.
    pub(crate) async fn of(server: McpServer, options: HttpOptions) -> Self {
        let listener = HttpListener::bind(options).await.unwrap();
        let (address, cancel) = (listener.address(), CancellationToken::new());
        let token = cancel.clone();
        tokio::spawn(async move { listener.serve(&server, token).await });
        Self { address, cancel }
    }

    /// Sends a request on a connection of its own.
    pub(crate) async fn send(&self, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = head.replace('\n', "\r\n");
        let request = format!(
            "{head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let headers = head.to_lowercase();
        let is_chunked = headers.contains("transfer-encoding: chunked");
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            headers,
            body: if is_chunked {
                joined_chunks(body)
            } else {
                body.to_owned()
            },
        }
    }

    pub(crate) async fn get(&self, path: &str, headers: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\nhost: localhost{headers}"), "")
            .await
    }

    pub(crate) async fn post(&self, headers: &str, message: &Value) -> Answer {
        let types = "content-type: application/json\naccept: application/json, text/event-stream";
        let head = format!("POST /mcp HTTP/1.1\nhost: localhost\n{types}{headers}");
        self.send(&head, &message.to_string()).await
    }

    /// Begins a session, and returns its id.
    pub(crate) async fn session(&self, headers: &str) -> String {
        self.session_with(headers, json!({})).await
    }

    /// Begins a session of a client with these capabilities, and returns its id.
    pub(crate) async fn session_with(&self, headers: &str, capabilities: Value) -> String {
        let answer = self
            .post(headers, &request("initialize", initialize_params(capabilities)))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.header("mcp-session-id").expect("a session").to_owned()
    }
}

fn initialize_params(capabilities: Value) -> Value {
    let client = json!({"name": "test", "version": "1"});
    json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client})
}

pub(crate) fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

pub(crate) fn call_hello() -> Value {
    request("tools/call", json!({"name": "hello", "arguments": {}}))
}

// attack: G1
#[tokio::test]
async fn web_pages_and_foreign_names_are_refused() {
    let served = serve(|options| options).await;
    assert_eq!(served.get("/healthz", "").await.status, 200);
    let evil = served.send("POST /mcp HTTP/1.1\nhost: evil.com", "{}").await;
    assert_eq!(evil.status, 403);
    let evil = served
        .send("POST /mcp HTTP/1.1\nhost: localhost\norigin: http://evil.com", "{}")
        .await;
    assert_eq!(evil.status, 403);
    let metrics = served.get("/metrics", "").await;
    assert!(
        metrics
            .body
            .contains("toolwit_mcp_http_rejected_total{reason=\"origin\"} 1"),
        "{}",
        metrics.body
    );
}

// attack: G5
#[tokio::test]
async fn a_session_is_served_and_forged_ones_are_not() {
    let served = serve(|options| options).await;
    let session = served.session("").await;
    let headers = format!("\nmcp-session-id: {session}\nmcp-protocol-version: 2025-11-25");
    let answer = served.post(&headers, &call_hello()).await;
    assert_eq!(answer.message()["result"]["content"][0]["text"], "hello");
    let forged = "\nmcp-session-id: 00000000-0000-4000-8000-000000000000";
    assert_eq!(served.post(forged, &call_hello()).await.status, 404);
    assert_eq!(
        served.get("/mcp", "\naccept: text/event-stream").await.status,
        400,
        "no session"
    );
    assert_eq!(served.get("/mcp", &headers).await.status, 406, "no `accept`");
    let html = format!("POST /mcp HTTP/1.1\nhost: localhost\ncontent-type: text/html{headers}");
    assert!((400..500).contains(&served.send(&html, "{}").await.status));
    let deleted = served
        .send(&format!("DELETE /mcp HTTP/1.1\nhost: localhost{headers}"), "")
        .await;
    assert!(deleted.status < 300, "{}", deleted.status);
    assert_eq!(served.post(&headers, &call_hello()).await.status, 404, "ended");
}

// attack: G5
#[tokio::test]
async fn bodies_and_sessions_are_limited() {
    let served = serve(|options| options.with_sessions_max(1)).await;
    let large = request("tools/call", json!({"name": "x".repeat(5 << 20)}));
    assert_eq!(served.post("", &large).await.status, 413);
    served.session("").await;
    let second = served
        .post("", &request("initialize", initialize_params(json!({}))))
        .await;
    assert_eq!((second.status, second.header("retry-after")), (503, Some("60")));
}

// attack: G15
#[tokio::test]
async fn the_first_message_of_a_session_is_short() {
    let served = serve(|options| options).await;
    let begin = async |client: Value| {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        served.post("", &request("initialize", params)).await.status
    };
    assert_eq!(begin(json!({"name": "x".repeat(20_000), "version": "1"})).await, 200);
    assert_eq!(begin(json!({"name": "x".repeat(200_000), "version": "1"})).await, 413);
    let icons = vec![json!({"src": "a"}); 1_000];
    assert_eq!(begin(json!({"name": "x", "version": "1", "icons": icons})).await, 413);
}

// attack: G6
#[tokio::test]
async fn requests_without_a_session_need_matching_headers() {
    let served = serve(|options| options).await;
    let params = json!({"name": "hello", "arguments": {}, "_meta": meta()});
    let message = request("tools/call", params);
    let headers = |method: &str, name: &str| {
        format!("\nmcp-protocol-version: 2026-07-28\nmcp-method: {method}\nmcp-name: {name}")
    };
    let answer = served.post(&headers("tools/call", "hello"), &message).await;
    assert_eq!(answer.message()["result"]["content"][0]["text"], "hello");
    assert_eq!(answer.header("mcp-session-id"), None);
    for wrong in [headers("tools/list", "hello"), headers("tools/call", "other")] {
        let refused = served.post(&wrong, &message).await;
        assert_eq!(
            (refused.status, &refused.message()["error"]["code"]),
            (400, &json!(-32020)),
            "{wrong}"
        );
    }
    let undeclared = served.post(&headers("tools/call", "hello"), &call_hello()).await;
    assert_eq!(undeclared.status, 400, "no `_meta`");
}

#[tokio::test]
async fn each_token_has_its_own_tools_limit_and_sessions() {
    let host = host().await;
    let ada = Principal::new("ada", host.clone());
    let bob = Principal::new("bob", host).restricted_to(|id| id == "native#hello");
    let bob = AccessToken::new(BOB, bob).unwrap().with_requests_per_minute(4);
    let metadata = ProtectedResource {
        resource: "https://tools.example/mcp".to_owned(),
        authorization_servers: vec!["https://login.example".to_owned()],
        scopes_supported: Vec::new(),
    };
    let served = serve(|options| {
        let options = options.with_token(AccessToken::new(ADA, ada).unwrap()).with_token(bob);
        options.with_protected_resource(metadata)
    });
    let served = served.await;
    let refused = served.post("", &call_hello()).await;
    assert_eq!(refused.status, 401);
    let challenge = "bearer resource_metadata=\"https://tools.example/.well-known/oauth-protected-resource/mcp\"";
    assert_eq!(refused.header("www-authenticate"), Some(challenge));
    assert_eq!(served.get("/metrics", "").await.status, 401);
    let metadata = served.get("/.well-known/oauth-protected-resource/mcp", "").await;
    assert_eq!(
        metadata.message()["authorization_servers"],
        json!(["https://login.example"])
    );
    assert_eq!(
        served.post("\nauthorization: Bearer wrong", &call_hello()).await.status,
        401
    );

    let (ada, bob) = (
        format!("\nauthorization: Bearer {ADA}"),
        format!("\nauthorization: Bearer {BOB}"),
    );
    let session = served.session(&ada).await;
    let session = format!("\nmcp-session-id: {session}\nmcp-protocol-version: 2025-11-25");
    assert_eq!(
        served.post(&format!("{bob}{session}"), &call_hello()).await.status,
        404,
        "of another token"
    );
    let own = served.post(&format!("{ada}{session}"), &call_hello()).await;
    assert_eq!(own.message()["result"]["content"][0]["text"], "hello");
    let bobs = served.session(&bob).await;
    let bobs = format!("{bob}\nmcp-session-id: {bobs}\nmcp-protocol-version: 2025-11-25");
    let listed = served.post(&bobs, &request("tools/list", json!({}))).await.message();
    let names: Vec<_> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, ["hello"]);
    assert_eq!(served.post(&bobs, &call_hello()).await.status, 200);
    let limited = served.post(&bobs, &call_hello()).await;
    assert_eq!(limited.status, 429);
    assert!(limited.header("retry-after").is_some());
}

// attack: G12
#[tokio::test]
async fn a_principal_cannot_use_up_the_sessions_and_requests_of_others() {
    let host = host().await;
    let token = |text, name| AccessToken::new(text, Principal::new(name, host.clone())).unwrap();
    let served = serve(|options| {
        let options = options.with_sessions_max(2).with_connections_max(8);
        options.with_token(token(ADA, "ada")).with_token(token(BOB, "bob"))
    });
    let served = served.await;
    let (ada, bob) = (
        format!("\nauthorization: Bearer {ADA}"),
        format!("\nauthorization: Bearer {BOB}"),
    );
    let session = served.session(&ada).await;
    let second = served
        .post(&ada, &request("initialize", initialize_params(json!({}))))
        .await;
    assert_eq!((second.status, second.header("retry-after")), (503, Some("60")));
    let bobs = served.session(&bob).await;
    let bobs = format!("{bob}\nmcp-session-id: {bobs}\nmcp-protocol-version: 2025-11-25");
    // Requests whose bodies do not arrive.
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let head = format!("POST /mcp HTTP/1.1\nhost: localhost{ada}\ncontent-length: 100\n\n");
        stream.write_all(head.replace('\n', "\r\n").as_bytes()).await.unwrap();
        open.push(stream);
    }
    let own = format!("{ada}\nmcp-session-id: {session}\nmcp-protocol-version: 2025-11-25");
    while served.post(&own, &call_hello()).await.status != 429 {
        tokio::task::yield_now().await;
    }
    assert_eq!(served.post(&bobs, &call_hello()).await.status, 200);
    drop(open);
    while served.post(&own, &call_hello()).await.status == 429 {
        tokio::task::yield_now().await;
    }
}

// attack: G17
#[tokio::test]
async fn connections_without_a_caller_give_way_to_others() {
    let token = AccessToken::new(ADA, Principal::new("ada", host().await)).unwrap();
    let served = serve(|options| options.with_connections_max(3).with_token(token)).await;
    let mut idle = Vec::new();
    for text in [
        "",
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n",
        "POST /mcp HTTP/1.1\r\n",
    ] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        idle.push(stream);
    }
    let ada = format!("\nauthorization: Bearer {ADA}");
    served.session(&ada).await;
    // The session took the place of the oldest.
    let closed = idle[0].read(&mut [0; 1]).await;
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
}

#[tokio::test]
async fn a_public_address_needs_a_token_and_a_name() {
    let public = || HttpOptions::new(([0, 0, 0, 0], 0).into());
    let refused = async |options: HttpOptions| HttpListener::bind(options).await.unwrap_err().to_string();
    assert!(refused(public()).await.contains("no token"));
    let token = AccessToken::new(ADA, Principal::new("ada", host().await)).unwrap();
    assert!(
        refused(public().with_token(token.clone()))
            .await
            .contains("no host name")
    );
    let twice = HttpOptions::new(([127, 0, 0, 1], 0).into())
        .with_token(token.clone())
        .with_token(token);
    assert!(refused(twice).await.contains("`ada`"));
    let short = AccessToken::new("short", Principal::new("x", host().await)).unwrap_err();
    assert!(short.to_string().contains("5 characters"), "{short}");
}

#[tokio::test]
async fn a_stopped_server_ends_its_connections() {
    let listener = HttpListener::bind(HttpOptions::new(([127, 0, 0, 1], 0).into()))
        .await
        .unwrap();
    let (address, cancel) = (listener.address(), CancellationToken::new());
    let server = McpServer::new(host().await);
    let serving = tokio::spawn({
        let cancel = cancel.clone();
        async move { listener.serve(&server, cancel).await }
    });
    let mut idle = TcpStream::connect(address).await.unwrap();
    cancel.cancel();
    serving.await.unwrap();
    let mut rest = Vec::new();
    drop(idle.read_to_end(&mut rest).await);
    assert!(rest.is_empty());
    assert!(TcpStream::connect(address).await.is_err());
}
