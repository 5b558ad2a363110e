//! The limits of sessions over HTTP.

use serde_json::{Value, json};

use crate::http::{Served, call_hello, host, request};
use crate::line_client::meta;
use crate::server;
use crate::token_issuer::{Issuer, Key, RESOURCE};
use toolwit_mcp_server::{AccessToken, HttpOptions, Principal, ProtectedResource, TokenRule};

/// The headers of a request of the revision without sessions.
const STATELESS: &str = "\nmcp-protocol-version: 2026-07-28\nmcp-method: ";

async fn serve(options: impl FnOnce(HttpOptions) -> HttpOptions) -> Served {
    let options = options(HttpOptions::new(([127, 0, 0, 1], 0).into()));
    Served::of(server().await, options).await
}

fn initialize(version: &str, client: &str) -> Value {
    let client = json!({"name": client, "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    request("initialize", params)
}

// attack: G5
#[tokio::test]
async fn the_method_and_not_a_header_decides_whether_a_session_counts() {
    let served = serve(|options| options.with_sessions_max(1)).await;
    let headers = format!("{STATELESS}initialize");
    let begin = async |client: &str| served.post(&headers, &initialize("2026-07-28", client)).await;
    assert_eq!(
        begin(&"x".repeat(200_000)).await.status,
        413,
        "the first message is short"
    );
    let first = begin("test").await;
    assert!(first.header("mcp-session-id").is_some(), "{}", first.message_text());
    let second = begin("test").await;
    assert_eq!((second.status, second.header("retry-after")), (503, Some("60")));
    // Requests without a session do not count.
    let headers = format!("{STATELESS}tools/call\nmcp-name: hello");
    let mut message = call_hello();
    message["params"]["_meta"] = meta();
    let answer = served.post(&headers, &message).await;
    assert_eq!(answer.message()["result"]["content"][0]["text"], "hello");
}

// attack: G12
#[tokio::test]
async fn sessions_without_an_id_are_limited() {
    let tokens = ["ada-0123456789abcdef0123", "bob-0123456789abcdef0123"];
    let host = host().await;
    let call = async |served: &Served, token: &str| {
        let headers = format!("\nauthorization: Bearer {token}{STATELESS}tools/call\nmcp-name: hello");
        let mut message = call_hello();
        message["params"]["_meta"] = meta();
        served.post(&headers, &message).await.message()["result"]["isError"].clone()
    };
    for (sessions_max, is_refused) in [(2, false), (1, true)] {
        let served = serve(|options| {
            let principals = tokens.map(|token| (token, Principal::new(&token[..3], host.clone())));
            let tokens = principals.map(|(token, principal)| AccessToken::new(token, principal).unwrap());
            let options = options.with_sessions_max(sessions_max);
            tokens.into_iter().fold(options, HttpOptions::with_token)
        });
        let served = served.await;
        assert_ne!(call(&served, tokens[0]).await, json!(true));
        assert_eq!(
            call(&served, tokens[1]).await == json!(true),
            is_refused,
            "{sessions_max} sessions"
        );
        assert_ne!(
            call(&served, tokens[0]).await,
            json!(true),
            "a session is shared by calls"
        );
    }
}

// attack: G12
#[tokio::test]
async fn subjects_of_a_rule_share_its_sessions() {
    let (key, host) = (Key::p256(), host().await);
    let issuer = Issuer::start(vec![key.public("k")]).await;
    let bob = "bob-0123456789abcdef0123";
    let resource = ProtectedResource {
        resource: RESOURCE.to_owned(),
        authorization_servers: vec![issuer.url.clone()],
        scopes_supported: Vec::new(),
    };
    let served = serve(|options| {
        let options = options.with_sessions_max(2).with_protected_resource(resource);
        let options = options.with_token_rule(TokenRule::new(Principal::new("everyone", host.clone())));
        options.with_token(AccessToken::new(bob, Principal::new("bob", host)).unwrap())
    });
    let served = served.await;
    let begin = async |token: &str| {
        let headers = format!("\nauthorization: Bearer {token}");
        served.post(&headers, &initialize("2025-11-25", "test")).await.status
    };
    let subject = |name: &str| key.token("k", &issuer.claims(name));
    assert_eq!(begin(&subject("ada")).await, 200);
    assert_eq!(begin(&subject("eve")).await, 503, "the rule has one session");
    assert_eq!(begin(bob).await, 200);
}
