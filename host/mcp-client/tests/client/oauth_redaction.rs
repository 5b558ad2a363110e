//! Errors with the texts of issuers, which know the secrets of their clients.

use serde_json::{Value, json};
use toolwit_core::ErrorKind;

use crate::http_server::{HttpServer, Reply, Request};
use crate::login::{is_access_token, log_in, start};
use crate::login_server::{Behaviour, config};
use crate::oauth::{CLIENT_SECRET, client, origin, origin_of, protected, refusal, server};

/// The number of characters after which the text of a server is cut in an error.
const QUOTED_CHARS_MAX: usize = 500;

/// Returns a text with a secret over the cut of an error, nine characters before it.
fn over_the_cut(prefix: &str, secret: &str) -> String {
    let filled = QUOTED_CHARS_MAX - 9;
    format!("{prefix:x<filled$}{secret}")
}

/// Checks that a text has been cut, and has no part of a secret that would be recognized.
fn has_no_part(text: &str, secret: &str) {
    assert!(text.contains("xxxx[redacted…"), "{text}");
    assert!(!text.contains(&secret[..8]), "{text}");
}

type Answer = fn(&Request, &str) -> Value;

// attack: G9
#[tokio::test]
async fn no_part_of_a_secret_is_left_where_the_text_of_an_issuer_is_cut() {
    let answers: [(&str, Answer); 3] = [
        (
            "is for another issuer",
            |_, _| json!({"issuer": over_the_cut("https://other.example/", CLIENT_SECRET)}),
        ),
        (
            "`token_endpoint`",
            |_, origin| json!({"issuer": origin, "token_endpoint": over_the_cut("http://other.example/", CLIENT_SECRET)}),
        ),
        ("tokens of the type", |request, origin| match &*request.path {
            "/token" => json!({"access_token": "access-token-1", "token_type": over_the_cut("", CLIENT_SECRET)}),
            _ => json!({"issuer": origin, "token_endpoint": format!("{origin}/token")}),
        }),
    ];
    for (reason, answer) in answers {
        let issuer = HttpServer::start(move |request| Some(Reply::json(&answer(request, &origin_of(request))))).await;
        let http = protected(origin(&issuer), &["access-token-1"], "Bearer").await;
        let error = refusal(&server(&http, client(&issuer))).await;
        assert!(error.contains(reason), "{error}");
        has_no_part(&error, CLIENT_SECRET);
    }
}

// attack: G9
#[tokio::test]
async fn no_part_of_a_secret_is_left_in_the_refusal_of_a_token_request() {
    let issuer = HttpServer::start(|request| {
        let origin = origin_of(request);
        Some(match &*request.path {
            "/token" => Reply::json_status(400, &json!({"error": over_the_cut("", CLIENT_SECRET)})),
            _ => Reply::json(&json!({"issuer": origin, "token_endpoint": format!("{origin}/token")})),
        })
    })
    .await;
    let http = protected(origin(&issuer), &["access-token-1"], "Bearer").await;
    has_no_part(&refusal(&server(&http, client(&issuer))).await, CLIENT_SECRET);
}

// attack: G9
// attack: G18
#[tokio::test]
async fn no_part_of_a_code_or_token_is_left_in_the_error_of_a_login() {
    let code = "the-secret-code-of-the-login";
    let behaviour = Behaviour {
        response: json!({"code": code, "iss": over_the_cut("https://evil.example/", code)}),
        ..Behaviour::default()
    };
    let (_issuer, http, logins) = start(behaviour, is_access_token).await;
    let error = log_in(&config(&http), &logins.options(), &[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io);
    has_no_part(&error.to_string(), code);

    let token = "the-access-token-of-the-login";
    let behaviour = Behaviour {
        tokens: json!({"access_token": token, "token_type": over_the_cut("", token)}),
        ..Behaviour::default()
    };
    let (_issuer, http, logins) = start(behaviour, is_access_token).await;
    let error = log_in(&config(&http), &logins.options(), &[]).await.unwrap_err();
    has_no_part(&error.to_string(), token);

    // The granted scopes are shown to the user.
    let behaviour = Behaviour {
        tokens: json!({"access_token": token, "scope": format!("read {token}")}),
        ..Behaviour::default()
    };
    let (_issuer, http, logins) = start(behaviour, is_access_token).await;
    let report = log_in(&config(&http), &logins.options(), &[]).await.unwrap();
    assert_eq!(report.scopes, ["read", "[redacted]"]);
}
