//! Hostile servers, issuers and responses in logins.

use serde_json::{Value, json};
use toolwit_core::ErrorKind;
use toolwit_mcp_client::{LoginRequest, OauthLogin, ServerConfig};

use crate::http_server::{HttpServer, Reply};
use crate::login::{is_access_token, log_in, start};
use crate::login_server::{Behaviour, SpecialReply, authority, config, get, redirect_of};

// attack: G18
#[tokio::test]
async fn a_response_of_another_issuer_gets_nothing() {
    let cases = [
        (
            json!({"iss": "https://evil.example"}),
            json!({}),
            "another issuer, `https://evil.example`",
        ),
        (json!({"iss": null}), json!({}), "does not name its issuer"),
        (
            json!({"iss": "https://evil.example"}),
            json!({"authorization_response_iss_parameter_supported": false}),
            "another issuer",
        ),
        (
            json!({"code": null, "error": "access_denied"}),
            json!({}),
            "was refused",
        ),
        (json!({"code": null}), json!({}), "has no code"),
    ];
    for (response, metadata, reason) in cases {
        let behaviour = Behaviour {
            response,
            metadata,
            ..Behaviour::default()
        };
        let (issuer, http, logins) = start(behaviour, is_access_token).await;
        let error = log_in(&config(&http), &logins.options(), &[]).await.unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert!(issuer.forms("/token").is_empty(), "the code is not sent");
        assert!(logins.0.lock().unwrap().is_empty());
    }
}

// attack: G18
#[tokio::test]
async fn a_response_to_another_login_is_ignored() {
    let (issuer, http, logins) = start(Behaviour::default(), is_access_token).await;
    let (config, options) = (config(&http), logins.options());
    let login = LoginRequest::new(&config, &options).begin().await.unwrap();
    let url = login.url().clone();
    let finished = tokio::spawn(login.finish());
    let right = redirect_of(&url).await;
    // Anyone who finds the port can send these.
    for query in ["code=evil", "code=evil&state=guess", "error=access_denied&state="] {
        let mut wrong = right.clone();
        wrong.set_query(Some(query));
        assert_eq!(get(&wrong, &authority(&right)).await.0, 400, "{query}");
    }
    assert_eq!(
        get(&right, "evil.example").await.0,
        404,
        "a web page under another name"
    );
    let mut elsewhere = right.clone();
    elsewhere.set_path("/other");
    assert_eq!(get(&elsewhere, &authority(&right)).await.0, 404);
    assert!(issuer.forms("/token").is_empty());
    assert_eq!(get(&right, &authority(&right)).await.0, 200);
    finished.await.unwrap().unwrap();
    assert_eq!(issuer.forms("/token")[0]["code"], "the-code");
}

// attack: G18
#[tokio::test]
async fn hostile_metadata_of_an_issuer_begins_no_login() {
    let cases = [
        (json!({"issuer": "https://evil.example"}), "is for another issuer"),
        (
            json!({"authorization_endpoint": "http://evil.example/authorize"}),
            "plain HTTP",
        ),
        (json!({"authorization_endpoint": "javascript:alert(1)"}), "its scheme"),
        (
            json!({"authorization_endpoint": "https://evil.example/authorize"}),
            "its scheme is not that of the issuer",
        ),
        (json!({"token_endpoint": "http://evil.example/token"}), "plain HTTP"),
        (
            json!({"registration_endpoint": "http://169.254.169.254/"}),
            "plain HTTP",
        ),
        (
            json!({"code_challenge_methods_supported": ["plain"]}),
            "does not support PKCE",
        ),
        (
            json!({"code_challenge_methods_supported": null}),
            "does not support PKCE",
        ),
        (json!({"registration_endpoint": null}), "does not register clients"),
    ];
    for (metadata, reason) in cases {
        let behaviour = Behaviour {
            metadata,
            ..Behaviour::default()
        };
        refused(behaviour, reason).await;
    }
}

// attack: G18
#[tokio::test]
async fn an_issuer_that_redirects_or_does_not_end_begins_no_login() {
    let endless: SpecialReply = || Some(Reply::json(&Value::Null).endless());
    let redirecting: SpecialReply = || Some(Reply::status(307).with_header("location", "https://evil.example/"));
    // The time passes at once when nothing else happens.
    let silent: SpecialReply = || {
        tokio::time::pause();
        None
    };
    for path in ["/.well-known/oauth-authorization-server", "/register"] {
        for (reply, reason) in [
            (endless, "larger than 64 KiB"),
            (redirecting, "redirects are not followed"),
            (silent, "no response within 15 s"),
        ] {
            let behaviour = Behaviour {
                special: Some((path, reply)),
                ..Behaviour::default()
            };
            refused(behaviour, reason).await;
            if reason.contains("within") {
                tokio::time::resume();
            }
        }
    }
}

#[tokio::test]
async fn an_issuer_that_refuses_the_client_begins_no_login() {
    let without_error: SpecialReply = || Some(Reply::status(400));
    let with_empty_error: SpecialReply = || Some(Reply::json_status(400, &json!({"error": ""})));
    let with_error: SpecialReply = || Some(Reply::json_status(400, &json!({"error": "invalid_redirect_uri"})));
    for (reply, reason) in [
        (without_error, "register the client: configure a `client_id`"),
        (with_empty_error, "register the client: configure a `client_id`"),
        (
            with_error,
            "register the client (`invalid_redirect_uri`): configure a `client_id`",
        ),
    ] {
        let behaviour = Behaviour {
            special: Some(("/register", reply)),
            ..Behaviour::default()
        };
        refused(behaviour, reason).await;
    }
}

/// Asserts that no login begins.
async fn refused(behaviour: Behaviour, reason: &str) {
    let (issuer, http, logins) = start(behaviour, is_access_token).await;
    let (config, options) = (config(&http), logins.options());
    let error = LoginRequest::new(&config, &options).begin().await.unwrap_err();
    assert!(error.to_string().contains(reason), "{error}");
    assert!(issuer.forms("/token").is_empty());
}

// attack: G18
#[tokio::test]
async fn a_server_whose_metadata_names_another_server_or_issuer_begins_no_login() {
    let (issuer, http, logins) = start(Behaviour::default(), is_access_token).await;
    let other = OauthLogin::default().with_issuer("https://login.example.com").unwrap();
    let (strict, options) = (config(&http).with_login(other), logins.options());
    let error = LoginRequest::new(&strict, &options).begin().await.unwrap_err();
    assert!(
        error.to_string().contains("and not of `https://login.example.com"),
        "{error}"
    );

    let origin = issuer.origin();
    let victim = HttpServer::start(move |_| {
        Some(Reply::json(
            &json!({"resource": "https://victim.example/mcp", "authorization_servers": [origin]}),
        ))
    })
    .await;
    let victim = config(&victim);
    let error = LoginRequest::new(&victim, &options).begin().await.unwrap_err();
    assert!(error.to_string().contains("for another server"), "{error}");
    assert!(issuer.http.received().is_empty());

    // A login would have no effect.
    let fixed = config(&http).with_bearer("a-fixed-token");
    let process = ServerConfig::process("test", "program").unwrap();
    for config in [&fixed, &process] {
        let error = LoginRequest::new(config, &options).begin().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration);
    }
}
