//! Logins in a browser: an authorization server, a server and a browser of the test.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use toolwit_agent::ToolSource;
use toolwit_core::{Error, ErrorKind, ToolContext};
use toolwit_mcp_client::{
    ClientOptions, LoginReport, LoginRequest, LoginRequired, Logout, McpServer, OauthLogin, Revocation, ServerConfig,
};

use crate::http_server::{HttpServer, Reply, handshake};
use crate::login_server::{Behaviour, LoginServer, Logins, SpecialReply, browse, config, protected};
use crate::works;

/// Logs in, with a browser that follows the redirect.
pub(crate) async fn log_in(
    config: &ServerConfig,
    options: &ClientOptions,
    scopes: &[&str],
) -> Result<LoginReport, Error> {
    let login = LoginRequest::new(config, options)
        .scopes(scopes.iter().copied())
        .begin()
        .await?;
    let browser = tokio::spawn(browse(login.url().clone()));
    let finished = login.finish().await;
    let status = browser.await.unwrap();
    assert!(status == 200 || finished.is_err(), "the browser shows {status}");
    finished
}

/// Returns the error of the first use, which requires a login.
async fn required(server: &McpServer) -> (String, Vec<String>) {
    let error = server.tools(&ToolContext::new()).await.err().unwrap();
    assert_eq!(error.kind, ErrorKind::MissingKey);
    let text = format!("{error:?}");
    assert!(
        !text.contains("access-token") && !text.contains("refresh-token"),
        "{text}"
    );
    let required = error.source().unwrap().downcast_ref::<LoginRequired>().unwrap();
    assert_eq!(required.server, "test");
    (error.to_string(), required.scopes.clone())
}

pub(crate) async fn start(behaviour: Behaviour, accepts: fn(&str) -> bool) -> (LoginServer, HttpServer, Logins) {
    let issuer = LoginServer::start(behaviour).await;
    let http = protected(issuer.origin(), accepts).await;
    (issuer, http, Logins::default())
}

pub(crate) fn is_access_token(token: &str) -> bool {
    token.starts_with("access-token-")
}

#[tokio::test]
async fn a_login_gets_tokens_for_its_server() {
    let (issuer, http, logins) = start(Behaviour::default(), is_access_token).await;
    let report = log_in(&config(&http), &logins.options(), &[]).await.unwrap();
    assert_eq!(report.scopes, ["read", "offline_access"], "the scopes of the challenge");
    assert!(report.is_renewable);
    assert_eq!(report.issuer, issuer.origin());

    works(&McpServer::new(config(&http), logins.options())).await;
    works(&McpServer::new(config(&http), logins.options())).await;
    let forms = issuer.forms("/token");
    assert_eq!(forms.len(), 1, "the token is used again");
    assert_eq!(forms[0]["resource"], http.url);
    assert_eq!(forms[0]["client_id"], "registered-client");
    assert!(!forms[0].contains_key("client_secret"));
    for request in http.received() {
        let text = format!("{request:?}");
        assert!(!text.contains("the-code") && !text.contains("refresh-token"), "{text}");
    }
    let login = logins.only();
    assert_eq!(login["issuer"], issuer.origin());
    assert_eq!(login["server"], http.url);
    assert_eq!(login["refresh_token"], "refresh-token-1");
    assert!(login.get("client_secret").is_none(), "a public client has none");
}

#[tokio::test]
async fn an_expired_token_is_renewed_once_for_all_processes() {
    let (issuer, http, logins) = start(Behaviour::default(), |token| token == "access-token-2").await;
    log_in(&config(&http), &logins.options(), &[]).await.unwrap();
    let expires_at = logins.only()["expires_at"].to_string();
    for text in logins.0.lock().unwrap().values_mut() {
        *text = text.replace(&expires_at, "1");
    }
    works(&McpServer::new(config(&http), logins.options())).await;
    works(&McpServer::new(config(&http), logins.options())).await;
    let forms = issuer.forms("/token");
    assert_eq!(forms.len(), 2, "the second process uses the token of the first");
    assert_eq!(forms[1]["grant_type"], "refresh_token");
    assert_eq!(forms[1]["refresh_token"], "refresh-token-1");
    assert_eq!(forms[1]["resource"], http.url);
    assert!(!format!("{forms:?}").contains("access-token"));
    assert_eq!(logins.only()["refresh_token"], "refresh-token-2");
    let refused = http
        .received()
        .into_iter()
        .filter(|request| format!("{request:?}").contains("access-token-1"));
    assert_eq!(refused.count(), 0, "an expired token is not sent");
}

#[tokio::test]
async fn a_login_of_another_process_is_used() {
    let (issuer, http, logins) = start(Behaviour::default(), |token| token == "access-token-2").await;
    log_in(&config(&http), &logins.options(), &[]).await.unwrap();
    let server = McpServer::new(config(&http), logins.options());
    // The token of the first login is refused, and renewed.
    works(&server).await;
    assert_eq!(issuer.forms("/token").len(), 2);

    let (_issuer, http, logins) = start(Behaviour::default(), is_access_token).await;
    let server = McpServer::new(config(&http), logins.options());
    assert_eq!(required(&server).await.1, [""; 0]);
    log_in(&config(&http), &logins.options(), &[]).await.unwrap();
    works(&McpServer::new(config(&http), logins.options())).await;
}

#[tokio::test]
async fn a_server_without_a_login_and_one_whose_login_has_ended_require_one() {
    let (_issuer, http, logins) = start(Behaviour::default(), |_| false).await;
    let server = McpServer::new(config(&http), logins.options());
    let (error, _) = required(&server).await;
    assert!(error.contains("it requires a login"), "{error}");
    // The new token is refused, too: there is no loop.
    log_in(&config(&http), &logins.options(), &[]).await.unwrap();
    let (error, _) = required(&McpServer::new(config(&http), logins.options())).await;
    assert!(error.contains("refuses the tokens of its login"), "{error}");

    let cases = [
        (
            Behaviour {
                tokens: json!({"expires_in": 0, "refresh_token": null}),
                ..Behaviour::default()
            },
            "has expired",
        ),
        (
            Behaviour {
                tokens: json!({"expires_in": 0}),
                refusal: Some("invalid_grant"),
                ..Behaviour::default()
            },
            "has ended the login",
        ),
    ];
    for (behaviour, reason) in cases {
        let (_issuer, http, logins) = start(behaviour, is_access_token).await;
        log_in(&config(&http), &logins.options(), &[]).await.unwrap();
        let (error, _) = required(&McpServer::new(config(&http), logins.options())).await;
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn a_login_for_a_further_scope_keeps_the_earlier_ones() {
    let (issuer, http, logins) = start(Behaviour::default(), |_| false).await;
    log_in(&config(&http), &logins.options(), &["first"]).await.unwrap();
    let report = log_in(&config(&http), &logins.options(), &["write"]).await.unwrap();
    assert_eq!(report.scopes, ["read", "first", "offline_access", "write"]);

    // A server that requires a scope gets no other token: the user decides.
    let tokens = issuer.forms("/token").len();
    let challenge = "Bearer error=\"insufficient_scope\", scope=\"admin\"";
    let origin = issuer.origin();
    let strict = HttpServer::start(move |request| {
        if request.path.starts_with("/.well-known") {
            let resource = format!("http://{}/mcp", request.headers["host"]);
            return Some(Reply::json(
                &json!({"resource": resource, "authorization_servers": [origin]}),
            ));
        }
        let is_known = request.headers.contains_key("authorization");
        Some(Reply::status(if is_known { 403 } else { 401 }).with_header("www-authenticate", challenge))
    })
    .await;
    log_in(&config(&strict), &logins.options(), &[]).await.unwrap();
    let (error, scopes) = required(&McpServer::new(config(&strict), logins.options())).await;
    assert!(
        error.contains("the scopes `admin`, which its login does not have"),
        "{error}"
    );
    assert_eq!(scopes, ["admin"]);
    assert_eq!(issuer.forms("/token").len() - tokens, 1, "that of the login");
}

#[tokio::test]
async fn a_login_is_used_at_its_server_and_for_its_issuer_only() {
    let (issuer, http, logins) = start(Behaviour::default(), is_access_token).await;
    log_in(&config(&http), &logins.options(), &[]).await.unwrap();
    // A server with the same name at another address.
    let other = protected(issuer.origin(), is_access_token).await;
    required(&McpServer::new(config(&other), logins.options())).await;
    assert!(!format!("{:?}", other.received()).contains("access-token"));
    // A stored login whose address was changed.
    let key = logins.0.lock().unwrap().keys().next().unwrap().clone();
    let text = logins.0.lock().unwrap()[&key].replace(&http.url, &other.url);
    logins.0.lock().unwrap().insert(key, text);
    required(&McpServer::new(config(&http), logins.options())).await;
    // Another issuer is configured.
    log_in(&config(&http), &logins.options(), &[]).await.unwrap();
    let before = http.received().len();
    let strict = OauthLogin::default().with_issuer("https://login.example.com").unwrap();
    let strict = McpServer::new(config(&http).with_login(strict), logins.options());
    let (error, _) = required(&strict).await;
    assert!(error.contains("for another issuer"), "{error}");
    assert_eq!(http.received().len(), before);
}

#[tokio::test]
async fn a_configured_client_is_not_registered() {
    let behaviour = Behaviour {
        metadata: json!({
            "client_id_metadata_document_supported": true,
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }),
        ..Behaviour::default()
    };
    let (issuer, http, logins) = start(behaviour, is_access_token).await;
    let own = OauthLogin::default()
        .with_client_id("own-client")
        .with_client_secret("own-secret");
    let own = own.with_scopes(["write"]);
    let report = log_in(&config(&http).with_login(own), &logins.options(), &[])
        .await
        .unwrap();
    assert_eq!(report.scopes, ["write"], "the configured scopes");
    let url = "https://toolwit.example/client.json";
    let document = OauthLogin::default().with_client_metadata_url(url).unwrap();
    log_in(&config(&http).with_login(document), &logins.options(), &[])
        .await
        .unwrap();
    let forms = issuer.forms("/token");
    assert_eq!(
        (forms[0]["client_id"].as_str(), forms[0]["client_secret"].as_str()),
        ("own-client", "own-secret")
    );
    assert_eq!(forms[1]["client_id"], url);
    assert!(issuer.forms("/register").is_empty());
    assert!(
        !format!("{:?}", logins.only()).contains("own-secret"),
        "a configured secret is not stored"
    );
}

#[tokio::test]
async fn a_logout_removes_the_login_and_revokes_its_tokens() {
    let (issuer, http, logins) = start(Behaviour::default(), is_access_token).await;
    let (config, options) = (config(&http), logins.options());
    assert_eq!(Logout::new(&config, &options).run().await.unwrap(), Revocation::NoLogin);
    log_in(&config, &options, &[]).await.unwrap();
    assert_eq!(Logout::new(&config, &options).run().await.unwrap(), Revocation::Revoked);
    let revoked: Vec<String> = issuer
        .forms("/revoke")
        .iter()
        .map(|form| form["token"].clone())
        .collect();
    assert_eq!(revoked, ["refresh-token-1", "access-token-1"]);
    assert!(logins.0.lock().unwrap().is_empty());
    required(&McpServer::new(config.clone(), options)).await;

    for (metadata, special) in [
        (json!({"revocation_endpoint": null}), None),
        (
            json!({}),
            Some(("/revoke", (|| Some(Reply::status(503))) as SpecialReply)),
        ),
    ] {
        let behaviour = Behaviour {
            metadata,
            special,
            ..Behaviour::default()
        };
        let (issuer, http, logins) = start(behaviour, is_access_token).await;
        let (config, options) = (crate::login_server::config(&http), logins.options());
        log_in(&config, &options, &[]).await.unwrap();
        let revocation = Logout::new(&config, &options).run().await.unwrap();
        assert!(
            matches!(revocation, Revocation::NotOffered | Revocation::Failed(_)),
            "{revocation:?}"
        );
        if matches!(revocation, Revocation::Failed(_)) {
            let requests = issuer.forms("/revoke").len();
            assert_eq!(requests, 2, "a token is sent even if the other one is not revoked");
        }
        assert!(logins.0.lock().unwrap().is_empty(), "it is removed in any case");
    }
}

#[tokio::test]
async fn a_logout_reports_that_the_tokens_of_another_address_are_not_revoked() {
    let (issuer, http, logins) = start(Behaviour::default(), is_access_token).await;
    let (config, options) = (config(&http), logins.options());
    log_in(&config, &options, &[]).await.unwrap();
    let mut login = logins.only();
    login["server"] = json!("https://elsewhere.example/mcp");
    for stored in logins.0.lock().unwrap().values_mut() {
        *stored = login.to_string();
    }
    let revocation = Logout::new(&config, &options).run().await.unwrap();
    assert!(
        matches!(&revocation, Revocation::Failed(why) if why.contains("another address")),
        "{revocation:?}"
    );
    assert!(issuer.forms("/revoke").is_empty());
    assert!(logins.0.lock().unwrap().is_empty(), "it is removed in any case");
}

#[tokio::test]
async fn metadata_that_cannot_be_read_at_the_moment_requires_no_login() {
    let issuer = LoginServer::start(Behaviour::default()).await;
    let (origin, is_down) = (issuer.origin(), Arc::new(AtomicBool::new(false)));
    let state = is_down.clone();
    let http = HttpServer::start(move |request| {
        let server = format!("http://{}", request.headers["host"]);
        let is_down = state.load(Ordering::Relaxed);
        if request.path.starts_with("/.well-known/") {
            let metadata = json!({"resource": format!("{server}/mcp"), "authorization_servers": [origin]});
            return Some(if is_down {
                Reply::status(503)
            } else {
                Reply::json(&metadata)
            });
        }
        if !is_down && request.headers.contains_key("authorization") {
            return handshake(request);
        }
        let metadata = format!("{server}/.well-known/oauth-protected-resource/mcp");
        let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
        Some(Reply::status(401).with_header("www-authenticate", challenge))
    })
    .await;
    let logins = Logins::default();
    log_in(&config(&http), &logins.options(), &[]).await.unwrap();
    works(&McpServer::new(config(&http), logins.options())).await;
    is_down.store(true, Ordering::Relaxed);
    let server = McpServer::new(config(&http), logins.options());
    let error = server.tools(&ToolContext::new()).await.err().unwrap();
    let source = error.source().and_then(|source| source.downcast_ref::<LoginRequired>());
    assert_eq!(source, None, "{error}");
    assert!(error.to_string().contains("responded with the status 503"), "{error}");
}
