//! Access tokens of an authorization server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use toolwit_mcp_server::{HttpListener, HttpOptions, McpServer, Principal, ProtectedResource, TokenRule};

use crate::http::{Answer, Served, call_hello, host};
use crate::token_issuer::{Issuer, Key, RESOURCE, encoded, message, now};

const METADATA: &str = "resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\"";

fn resource(issuer: &str) -> ProtectedResource {
    ProtectedResource {
        resource: RESOURCE.to_owned(),
        authorization_servers: vec![issuer.to_owned()],
        scopes_supported: vec!["tools".to_owned()],
    }
}

/// Serves for tokens of an issuer with the scope `tools`.
async fn serve(issuer: &str, rules: impl IntoIterator<Item = TokenRule>) -> Served {
    let options = HttpOptions::new(([127, 0, 0, 1], 0).into());
    let options = options
        .with_protected_resource(resource(issuer))
        .with_required_scopes(["tools"]);
    let options = rules.into_iter().fold(options, HttpOptions::with_token_rule);
    Served::of(McpServer::new(host().await), options).await
}

async fn everyone() -> TokenRule {
    TokenRule::new(Principal::new("everyone", host().await))
}

/// Begins a session with a token.
async fn begin(served: &Served, token: &str) -> Answer {
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let message = crate::http::request("initialize", params);
    served.post(&format!("\nauthorization: Bearer {token}"), &message).await
}

/// Asserts that a token is refused as invalid.
async fn refused(served: &Served, token: &str, reason: &str) {
    let answer = begin(served, token).await;
    assert_eq!(answer.status, 401, "{reason}");
    let challenge = answer.header("www-authenticate").unwrap();
    assert!(
        challenge.contains("error=\"invalid_token\"") && challenge.contains(METADATA),
        "{challenge}"
    );
}

// attack: G19
#[tokio::test]
async fn each_accepted_algorithm_verifies_and_no_other_signature_does() {
    let keys = [Key::rsa(), Key::p256(), Key::ed25519()];
    let other = [Key::p256(), Key::ed25519()];
    let ids = ["RS256", "ES256", "EdDSA"];
    let public = keys.iter().zip(ids).map(|(key, id)| key.public(id)).collect();
    let issuer = Issuer::start(public).await;
    let served = serve(&issuer.url, [everyone().await]).await;
    for (key, id) in keys.iter().zip(ids) {
        let claims = issuer.claims("ada");
        let token = key.token(id, &claims);
        assert_eq!(begin(&served, &token).await.status, 200, "{id}");
        // Without an id, the only key of the algorithm is used.
        let nameless = key.sign(&json!({"alg": id}), &claims);
        assert_eq!(begin(&served, &nameless).await.status, 200, "{id}");

        let (signed, signature) = token.rsplit_once('.').unwrap();
        let richer = json!({"iss": issuer.url, "sub": "root", "aud": RESOURCE, "exp": now() + 300, "scope": "tools"});
        let stolen = format!("{}.{signature}", message(&json!({"alg": id, "kid": id}), &richer));
        refused(&served, &stolen, "the claims of another token").await;
        refused(&served, &format!("{signed}."), "no signature").await;
        refused(&served, signed, "two parts").await;
        for header in [
            json!({"alg": "none", "kid": id}),
            json!({"alg": "None", "kid": id}),
            json!({"kid": id}),
        ] {
            refused(&served, &format!("{}.", message(&header, &claims)), "no algorithm").await;
        }
        // The public key as a shared secret.
        let header = json!({"alg": "HS256", "kid": id});
        let secret = key.public(id).to_string();
        let hashed = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
        let text = message(&header, &claims);
        let tag = ring::hmac::sign(&hashed, text.as_bytes());
        refused(&served, &format!("{text}.{}", encoded(tag.as_ref())), "HMAC").await;
        // A key of another kind, and a key that the token contains.
        for stranger in &other {
            refused(&served, &stranger.token(id, &claims), "another key").await;
            let header =
                json!({"alg": stranger.algorithm(), "kid": id, "jwk": stranger.public(id), "jku": "http://127.0.0.1/"});
            refused(&served, &stranger.sign(&header, &claims), "a key of its own").await;
        }
    }
    assert_eq!(
        issuer.requests.load(Ordering::Relaxed),
        1,
        "the keys are requested once"
    );
}

// attack: G19
#[tokio::test]
async fn a_token_with_wrong_claims_is_refused() {
    let key = Key::ed25519();
    let issuer = Issuer::start(vec![key.public("k")]).await;
    let served = serve(&issuer.url, [everyone().await]).await;
    let changes = [
        ("aud", json!("https://other.example.com/mcp")),
        ("aud", json!(["https://other.example.com/mcp", "tools"])),
        ("aud", Value::Null),
        ("iss", json!("https://evil.example")),
        ("iss", json!(format!("{}/", issuer.url))),
        ("iss", json!([issuer.url])),
        ("exp", json!(now() - 60)),
        ("exp", json!((now() + 300).to_string())),
        ("exp", Value::Null),
        ("nbf", json!(now() + 120)),
        ("nbf", json!("now")),
        ("sub", json!("")),
        ("sub", Value::Null),
        ("sub", json!("x".repeat(2_000))),
    ];
    for (name, value) in changes {
        let mut claims = issuer.claims("ada");
        claims[name] = value.clone();
        refused(&served, &key.token("k", &claims), &format!("{name} is {value}")).await;
    }
    let claims = issuer.claims("ada");
    for header in [
        json!({"alg": "EdDSA", "kid": "k", "crit": ["exp"]}),
        json!({"alg": "EdDSA", "kid": "k", "typ": "logout+jwt"}),
    ] {
        refused(&served, &key.sign(&header, &claims), "the header").await;
    }
    assert_eq!(begin(&served, "").await.status, 401, "no token");
    for garbage in [
        "a.b.c",
        "....",
        &"x".repeat(20_000),
        &format!("{}.e30.", encoded(b"{}")),
    ] {
        refused(&served, garbage, "garbage").await;
    }
    // Clocks differ a little, and an audience can be one of several.
    let mut claims = issuer.claims("ada");
    claims["exp"] = json!(now() - 5);
    claims["nbf"] = json!(now() + 5);
    claims["aud"] = json!(["https://other.example.com/mcp", RESOURCE]);
    assert_eq!(begin(&served, &key.token("k", &claims)).await.status, 200);
}

// attack: G19
#[tokio::test]
async fn unknown_keys_do_not_flood_the_issuer_and_new_keys_are_found() {
    let (old, new) = (Key::ed25519(), Key::ed25519());
    let issuer = Issuer::start(vec![old.public("old")]).await;
    let served = serve(&issuer.url, [everyone().await]).await;
    let claims = issuer.claims("ada");
    for number in 0..20 {
        refused(
            &served,
            &old.token(&format!("unknown-{number}"), &claims),
            "an unknown key",
        )
        .await;
    }
    assert_eq!(issuer.requests.load(Ordering::Relaxed), 1);
    assert_eq!(begin(&served, &old.token("old", &claims)).await.status, 200);

    issuer.replace_keys(vec![new.public("new")]);
    refused(&served, &new.token("new", &claims), "too early").await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    assert_eq!(begin(&served, &new.token("new", &claims)).await.status, 200);
    refused(&served, &old.token("old", &claims), "a key that was removed").await;
    assert_eq!(issuer.requests.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_rule_decides_by_subject_client_and_scope() {
    let key = Key::p256();
    let issuer = Issuer::start(vec![key.public("k")]).await;
    let few = Principal::new("few", host().await).restricted_to(|id| id.ends_with("#hello"));
    let rules = [
        TokenRule::new(few).with_subject("ada"),
        TokenRule::new(Principal::new("program", host().await)).with_client("build"),
        TokenRule::new(Principal::new("admins", host().await)).with_scope("admin"),
    ];
    let served = serve(&issuer.url, rules).await;
    let token = |subject: &str, changes: Value| {
        let mut claims = issuer.claims(subject);
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        key.token("k", &claims)
    };
    let tools = async |token: &str| {
        let headers = format!("\nauthorization: Bearer {token}");
        let session = served.session(&headers).await;
        let headers = format!("{headers}\nmcp-session-id: {session}");
        let list = served
            .post(&headers, &crate::http::request("tools/list", json!({})))
            .await;
        list.message()["result"]["tools"].as_array().unwrap().len()
    };
    assert_eq!(tools(&token("ada", json!({}))).await, 1);
    assert!(tools(&token("bob", json!({"client_id": "build"}))).await > 1);
    assert!(tools(&token("bob", json!({"azp": "build"}))).await > 1);
    assert!(tools(&token("bob", json!({"scope": "tools admin"}))).await > 1);
    assert!(tools(&token("bob", json!({"scope": null, "scp": ["tools", "admin"]}))).await > 1);

    let lacking = begin(&served, &token("bob", json!({}))).await;
    let challenge = lacking.header("www-authenticate").unwrap();
    assert_eq!(lacking.status, 403);
    assert!(
        challenge.contains("error=\"insufficient_scope\", scope=\"tools admin\""),
        "{challenge}"
    );
    assert!(challenge.contains(METADATA), "{challenge}");
    let lacking = begin(&served, &token("ada", json!({"scope": "admin"}))).await;
    assert_eq!(lacking.status, 403);
    assert!(lacking.header("www-authenticate").unwrap().contains("scope=\"tools\""));

    let missing = served.post("", &call_hello()).await;
    assert_eq!(missing.status, 401);
    let challenge = missing.header("www-authenticate").unwrap();
    assert!(
        challenge.starts_with("bearer scope=\"tools\"") && !challenge.contains("error="),
        "{challenge}"
    );
}

#[tokio::test]
async fn subjects_are_apart() {
    let key = Key::p256();
    let issuer = Issuer::start(vec![key.public("k")]).await;
    let served = serve(&issuer.url, [everyone().await.with_requests_per_minute(3)]).await;
    let bearer = |subject: &str| format!("\nauthorization: Bearer {}", key.token("k", &issuer.claims(subject)));
    let session = served.session(&bearer("ada")).await;
    let in_session = |subject: &str| format!("{}\nmcp-session-id: {session}", bearer(subject));
    assert_eq!(served.post(&in_session("ada"), &call_hello()).await.status, 200);
    assert_eq!(
        served.post(&in_session("bob"), &call_hello()).await.status,
        404,
        "the session of another"
    );
    assert_eq!(served.post(&in_session("ada"), &call_hello()).await.status, 200);
    assert_eq!(served.post(&in_session("ada"), &call_hello()).await.status, 429);
    served.session(&bearer("bob")).await;
    let metrics = served.get("/metrics", &bearer("bob")).await;
    assert_eq!(metrics.status, 200);
    let counted = "toolwit_mcp_calls_total{principal=\"everyone\",outcome=\"ok\"} 2";
    assert!(metrics.message_text().contains(counted), "a counter for all subjects");
}

#[tokio::test]
async fn a_token_that_cannot_be_checked_is_not_accepted() {
    let key = Key::p256();
    let issuer = Issuer::start(vec![key.public("k")]).await;
    let token = key.token("k", &issuer.claims("ada"));
    let url = issuer.url.clone();
    drop(issuer);
    let served = serve(&url, [everyone().await]).await;
    let answer = begin(&served, &token).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("30")));

    // Rules need an issuer, and allow a public address.
    let public = || HttpOptions::new(([0, 0, 0, 0], 0).into()).with_host("tools.example.com");
    let rule = everyone().await;
    let without = HttpListener::bind(public().with_token_rule(rule.clone()))
        .await
        .unwrap_err();
    assert!(without.message.contains("no authorization server"), "{without}");
    let with = public().with_token_rule(rule).with_protected_resource(resource(&url));
    assert!(HttpListener::bind(with).await.is_ok());
    assert!(
        HttpListener::bind(public().with_protected_resource(resource(&url)))
            .await
            .is_err()
    );
}
