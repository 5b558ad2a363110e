//! Tokens of OAuth: an issuer and a server of the test.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use toolwit_agent::ToolSource;
use toolwit_core::{Error, ErrorKind, Phase, ToolContext};
use toolwit_mcp_client::{ClientOptions, McpServer, OauthClient, ServerConfig, SettingValue, ValueSource};
use zeroize::Zeroizing;

use crate::http_server::{HttpServer, Reply, Request, handshake};
use crate::works;

pub(crate) const CLIENT_SECRET: &str = "the-secret-of-the-client";

/// Returns the origin of a server.
pub(crate) fn origin(server: &HttpServer) -> String {
    server.url.trim_end_matches("/mcp").to_owned()
}

pub(crate) fn origin_of(request: &Request) -> String {
    format!("http://{}", request.headers["host"])
}

/// Answers like an issuer, whose tokens are `access-token-1`, `access-token-2` and so on.
fn issuer(number: Arc<AtomicUsize>) -> impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static {
    move |request| {
        let origin = origin_of(request);
        Some(match request.path.as_str() {
            "/.well-known/oauth-authorization-server" => {
                Reply::json(&json!({"issuer": origin, "token_endpoint": format!("{origin}/token")}))
            }
            "/token" => {
                let number = number.fetch_add(1, Ordering::Relaxed) + 1;
                Reply::json(&json!({
                    "access_token": format!("access-token-{number}"), "token_type": "Bearer", "expires_in": 3600,
                    "refresh_token": format!("refresh-token-{number}"),
                }))
            }
            _ => Reply::status(404),
        })
    }
}

async fn issuer_server() -> HttpServer {
    HttpServer::start(issuer(Arc::default())).await
}

/// Starts a server that accepts some tokens of an issuer, and challenges other requests.
pub(crate) async fn protected(
    issuer: String,
    accepted: &'static [&'static str],
    challenge: &'static str,
) -> HttpServer {
    HttpServer::start(move |request| {
        if request.path.starts_with("/.well-known/oauth-protected-resource") {
            let resource = format!("{}/mcp", origin_of(request));
            return Some(Reply::json(
                &json!({"resource": resource, "authorization_servers": [issuer]}),
            ));
        }
        let token = request.headers.get("authorization").map(String::as_str);
        if token.is_some_and(|token| accepted.iter().any(|accepted| token == format!("Bearer {accepted}"))) {
            return handshake(request);
        }
        let status = if challenge.contains("insufficient_scope") {
            403
        } else {
            401
        };
        Some(Reply::status(status).with_header("www-authenticate", challenge))
    })
    .await
}

pub(crate) fn client(issuer: &HttpServer) -> OauthClient {
    let client = OauthClient::new(&origin(issuer), "toolwit").unwrap();
    client.with_client_secret(CLIENT_SECRET).with_scopes(["read"])
}

pub(crate) fn server(http: &HttpServer, client: OauthClient) -> McpServer {
    let config = ServerConfig::http("test", &http.url).unwrap().with_oauth(client);
    McpServer::new(config, ClientOptions::default())
}

/// Returns the error of the first use.
pub(crate) async fn refusal(server: &McpServer) -> String {
    let error = server.tools(&ToolContext::new()).await.err().unwrap();
    assert!(!format!("{error:?}").contains(CLIENT_SECRET));
    error.to_string()
}

fn token_requests(issuer: &HttpServer) -> Vec<Request> {
    let received = issuer.received().into_iter();
    received.filter(|request| request.path == "/token").collect()
}

#[tokio::test]
async fn a_token_is_for_its_server_and_the_secret_for_the_issuer() {
    let issuer = issuer_server().await;
    let http = protected(origin(&issuer), &["access-token-1"], "Bearer").await;
    works(&server(&http, client(&issuer))).await;

    let requests = token_requests(&issuer);
    assert_eq!(requests.len(), 1, "the token is used again");
    let form = &requests[0].body;
    for pair in [
        "grant_type=client_credentials",
        "scope=read",
        "resource=http%3A%2F%2F127.0.0.1%3A",
    ] {
        assert!(form.contains(pair), "{form}");
    }
    assert!(requests[0].headers["authorization"].starts_with("Basic "));
    assert!(!form.contains(CLIENT_SECRET));
    for request in issuer.received() {
        assert!(!format!("{request:?}").contains("access-token"));
    }
    for request in http.received() {
        let text = format!("{request:?}");
        assert!(!text.contains(CLIENT_SECRET) && !text.contains("Basic "), "{text}");
        let is_metadata = request.path.starts_with("/.well-known");
        assert_ne!(is_metadata, request.headers.contains_key("authorization"), "{text}");
    }
}

#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    let issuer = issuer_server().await;
    let http = protected(origin(&issuer), &["access-token-2"], "Bearer error=\"invalid_token\"").await;
    works(&server(&http, client(&issuer))).await;
    assert_eq!(token_requests(&issuer).len(), 2);

    let http = protected(origin(&issuer), &[], "Bearer").await;
    let before = token_requests(&issuer).len();
    refusal(&server(&http, client(&issuer))).await;
    assert_eq!(
        token_requests(&issuer).len() - before,
        2,
        "a server cannot cause a loop"
    );
}

#[tokio::test]
async fn an_allowed_scope_is_added_and_another_is_refused() {
    let challenge = "Bearer error=\"insufficient_scope\", scope=\"read write\"";
    let issuer = issuer_server().await;
    let http = protected(origin(&issuer), &["access-token-2"], challenge).await;
    works(&server(&http, client(&issuer).with_step_up_scopes(["write", "other"]))).await;
    assert!(token_requests(&issuer)[1].body.contains("scope=read+write"));

    let issuer = issuer_server().await;
    let http = protected(origin(&issuer), &["access-token-2"], challenge).await;
    let error = refusal(&server(&http, client(&issuer))).await;
    assert!(
        error.contains("the scope `write`, which `step_up_scopes` does not have"),
        "{error}"
    );
    assert_eq!(token_requests(&issuer).len(), 1);
}

/// Has the secret `refresh`, which can be replaced unless it is locked.
#[derive(Clone, Default)]
struct Values(Arc<Mutex<Option<String>>>, Arc<AtomicBool>);

impl ValueSource for Values {
    fn secret(&self, _name: &str) -> Result<Option<Zeroizing<String>>, Error> {
        let replaced = self.0.lock().unwrap().clone();
        Ok(Some(Zeroizing::new(
            replaced.unwrap_or_else(|| "the-first-refresh-token".to_owned()),
        )))
    }

    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn replace_secret(&self, name: &str, value: &str) -> Result<(), Error> {
        assert_eq!(name, "refresh");
        if self.1.load(Ordering::Relaxed) {
            let message = "the secret store is locked";
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message));
        }
        *self.0.lock().unwrap() = Some(value.to_owned());
        Ok(())
    }
}

/// Configures a server with a refresh token.
fn server_of_user(http: &HttpServer, issuer: &HttpServer, token: SettingValue, values: &Values) -> McpServer {
    let client = OauthClient::new(&origin(issuer), "toolwit").unwrap();
    let config = ServerConfig::http("test", &http.url).unwrap();
    McpServer::new(
        config.with_oauth(client.with_refresh_token(token)),
        ClientOptions::default().with_values(values.clone()),
    )
}

#[tokio::test]
async fn a_replaced_refresh_token_is_stored_and_used() {
    let issuer = issuer_server().await;
    let http = protected(origin(&issuer), &["access-token-2"], "Bearer").await;
    let values = Values::default();
    let server = server_of_user(&http, &issuer, SettingValue::secret("refresh"), &values);
    works(&server).await;
    let requests = token_requests(&issuer);
    assert!(
        requests[0]
            .body
            .contains("grant_type=refresh_token&refresh_token=the-first-refresh-token")
    );
    assert!(requests[0].body.contains("client_id=toolwit"));
    assert!(requests[1].body.contains("refresh_token=refresh-token-1"));
    assert_eq!(values.0.lock().unwrap().as_deref(), Some("refresh-token-2"));
}

#[tokio::test]
async fn a_replaced_refresh_token_that_cannot_be_stored_is_an_error() {
    let literal = (
        SettingValue::from("the-first-refresh-token"),
        "`refresh_token` is not a secret",
    );
    let secret = (SettingValue::secret("refresh"), "the secret store is locked");
    for (token, reason) in [literal, secret] {
        let issuer = issuer_server().await;
        let http = protected(origin(&issuer), &["access-token-1"], "Bearer").await;
        let values = Values::default();
        values.1.store(true, Ordering::Relaxed);
        let error = refusal(&server_of_user(&http, &issuer, token, &values)).await;
        assert!(error.contains("the new refresh token is not stored"), "{error}");
        assert!(error.contains(reason) && !error.contains("refresh-token-1"), "{error}");
        assert_eq!(token_requests(&issuer).len(), 1);
    }
}

#[tokio::test]
async fn a_replaced_refresh_token_that_cannot_be_stored_fails_a_later_call() {
    let issuer = issuer_server().await;
    let accepted = Arc::new(AtomicUsize::new(1));
    let current = accepted.clone();
    let http = HttpServer::start(move |request| {
        let token = format!("Bearer access-token-{}", current.load(Ordering::Relaxed));
        if request.headers.get("authorization") == Some(&token) {
            return handshake(request);
        }
        let is_metadata = request.path.starts_with("/.well-known");
        Some(Reply::status(if is_metadata { 404 } else { 401 }).with_header("www-authenticate", "Bearer"))
    })
    .await;
    let values = Values::default();
    let server = server_of_user(&http, &issuer, SettingValue::secret("refresh"), &values);
    works(&server).await;

    accepted.store(2, Ordering::Relaxed);
    values.1.store(true, Ordering::Relaxed);
    let error = crate::call(&server, "echo", json!({"text": "hello"})).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("the new refresh token is not stored"), "{error}");
    assert!(!error.contains("refresh-token-2"), "{error}");
    assert_eq!(values.0.lock().unwrap().as_deref(), Some("refresh-token-1"));

    // The next call stores it, without another token request.
    values.1.store(false, Ordering::Relaxed);
    works(&server).await;
    assert_eq!(values.0.lock().unwrap().as_deref(), Some("refresh-token-2"));
    assert_eq!(token_requests(&issuer).len(), 2);
}

#[tokio::test]
async fn hostile_metadata_of_a_server_gets_nothing() {
    let issuer = issuer_server().await;
    let evil = issuer_server().await;
    // It names another issuer.
    let http = protected(origin(&evil), &["access-token-1"], "Bearer").await;
    let error = refusal(&server(&http, client(&issuer))).await;
    assert!(error.contains("and not of `http"), "{error}");
    // It is for another server, redirects, or does not end.
    let other = origin(&issuer);
    let victim = json!({"resource": "https://victim.example/mcp", "authorization_servers": [other]});
    let replies: [Arc<dyn Fn() -> Reply + Send + Sync>; 3] = [
        Arc::new(move || Reply::json(&victim)),
        Arc::new(|| Reply::status(302).with_header("location", "/.well-known/oauth-protected-resource")),
        Arc::new(|| {
            Reply::status(200)
                .with_header("content-type", "application/json")
                .endless()
        }),
    ];
    for (reply, reason) in replies
        .into_iter()
        .zip(["for another server", "it redirects", "larger than 64 KiB"])
    {
        let http = HttpServer::start(move |_| Some(reply())).await;
        let error = refusal(&server(&http, client(&issuer))).await;
        assert!(error.contains(reason), "{error}");
    }
    // A challenge names metadata elsewhere.
    let challenge = "Bearer resource_metadata=\"https://evil.example/metadata\"";
    let http = protected(origin(&issuer), &[], challenge).await;
    let error = refusal(&server(&http, client(&issuer))).await;
    assert!(error.contains("metadata at another origin"), "{error}");
    assert!(evil.received().is_empty());
    assert_eq!(token_requests(&issuer).len(), 1, "before the challenge");
}

#[tokio::test]
async fn metadata_that_cannot_be_read_at_the_moment_is_not_missing() {
    let issuer = issuer_server().await;
    for (status, is_missing) in [
        (404, true),
        (401, true),
        (408, false),
        (429, false),
        (500, false),
        (503, false),
    ] {
        let http = HttpServer::start(move |request| {
            if request.path.starts_with("/.well-known") {
                return Some(Reply::status(status));
            }
            handshake(request)
        })
        .await;
        let before = token_requests(&issuer).len();
        if is_missing {
            works(&server(&http, client(&issuer))).await;
        } else {
            let error = refusal(&server(&http, client(&issuer))).await;
            assert!(
                error.contains(&format!("responded with the status {status}")),
                "{error}"
            );
        }
        assert_eq!(
            token_requests(&issuer).len() - before,
            usize::from(is_missing),
            "{status}"
        );
    }
}

#[tokio::test]
async fn other_metadata_of_an_issuer_is_read_if_the_first_has_an_error_status() {
    for (status, has_other) in [(500, true), (404, true), (500, false)] {
        let issuer = HttpServer::start(move |request| {
            let origin = origin_of(request);
            Some(match request.path.as_str() {
                "/.well-known/openid-configuration" if has_other => {
                    Reply::json(&json!({"issuer": origin, "token_endpoint": format!("{origin}/token")}))
                }
                "/token" => Reply::json(&json!({"access_token": "access-token-1", "token_type": "Bearer"})),
                _ => Reply::status(status),
            })
        })
        .await;
        let http = protected(origin(&issuer), &["access-token-1"], "Bearer").await;
        if has_other {
            works(&server(&http, client(&issuer))).await;
        } else {
            let error = refusal(&server(&http, client(&issuer))).await;
            assert!(
                error.contains("oauth-authorization-server responded with the status 500"),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn hostile_metadata_of_an_issuer_gets_nothing() {
    let metadata = [
        (
            json!({"issuer": "https://other.example", "token_endpoint": "https://other.example/token"}),
            "is for another issuer",
        ),
        (
            json!({"issuer": "ORIGIN", "token_endpoint": "http://other.example/token"}),
            "plain HTTP",
        ),
        (
            json!({"issuer": "ORIGIN", "token_endpoint": "file:///etc/passwd"}),
            "its scheme",
        ),
        (json!({"issuer": "ORIGIN"}), "has no `token_endpoint`"),
        (json!({"issuer": 1}), "not a valid metadata document"),
    ];
    for (document, reason) in metadata {
        let issuer = HttpServer::start(move |request| {
            let mut document = document.clone();
            if document["issuer"] == "ORIGIN" {
                document["issuer"] = json!(origin_of(request));
            }
            Some(Reply::json(&document))
        })
        .await;
        let http = protected(origin(&issuer), &["access-token-1"], "Bearer").await;
        let error = refusal(&server(&http, client(&issuer))).await;
        assert!(error.contains(reason), "{error}");
        assert!(token_requests(&issuer).is_empty());
    }
}

#[tokio::test]
async fn a_token_that_a_server_returns_is_redacted() {
    let issuer = issuer_server().await;
    let http = protected(origin(&issuer), &["access-token-1"], "Bearer").await;
    let server = server(&http, client(&issuer));
    let text = json!({"text": "it is access-token-1"});
    let result = crate::call(&server, "echo", text).await.unwrap();
    assert_eq!(result.for_llm, "it is [redacted]");
}
