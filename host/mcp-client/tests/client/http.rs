//! A server that is reached over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use toolwit_agent::ToolSource;
use toolwit_core::{ErrorKind, ToolContext};
use toolwit_mcp_client::{ClientOptions, McpServer, RevisionChoice, ServerConfig, SettingValue};

use crate::http_server::{HttpServer, Reply, Request, echoed, handshake, stateless};
use crate::{call, call_with, works};

fn config(http: &HttpServer) -> ServerConfig {
    ServerConfig::http("test", &http.url).unwrap()
}

fn client(config: ServerConfig) -> McpServer {
    McpServer::new(config, ClientOptions::default())
}

#[tokio::test]
async fn each_revision_is_spoken() {
    let http = HttpServer::start(handshake).await;
    let server = client(config(&http));
    works(&server).await;
    assert_eq!(server.report(&ToolContext::new()).await.unwrap().revision, "2025-06-18");
    let called = &http.received_of("tools/call")[0];
    assert_eq!(called.headers["mcp-protocol-version"], "2025-06-18");

    let http = HttpServer::start(stateless).await;
    let server = client(config(&http));
    works(&server).await;
    assert_eq!(server.report(&ToolContext::new()).await.unwrap().revision, "2026-07-28");
    let called = &http.received_of("tools/call")[0];
    assert_eq!(called.headers["mcp-protocol-version"], "2026-07-28");
    assert_eq!(
        (
            called.headers["mcp-method"].as_str(),
            called.headers["mcp-name"].as_str()
        ),
        ("tools/call", "echo")
    );
    assert!(http.received_of("initialize").is_empty());
}

#[tokio::test]
async fn arguments_are_sent_as_headers_whatever_form_the_list_had() {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": "Text"}}});
    let list = json!({
        "tools": [{"name": "echo", "inputSchema": schema}], "resultType": "complete", "ttlMs": 0, "cacheScope": "public",
    });
    // A stream that ends with the list was processed too late at times.
    for is_stream in [true, false].repeat(8) {
        let list = list.clone();
        let http = HttpServer::start(move |request| {
            if request.message["method"] != "tools/list" {
                return stateless(request);
            }
            let message = json!({"jsonrpc": "2.0", "id": request.message["id"], "result": list});
            Some(if is_stream {
                Reply::events(&format!("data: {message}\n\n"))
            } else {
                Reply::json(&message)
            })
        })
        .await;
        works(&client(config(&http))).await;
        let called = &http.received_of("tools/call")[0];
        assert_eq!(called.headers["mcp-param-text"], "hello", "stream: {is_stream}");
    }
}

#[tokio::test]
async fn a_list_is_read_again_when_its_time_is_over() {
    let http = HttpServer::start(stateless).await;
    let server = client(config(&http));
    for _ in 0..3 {
        server.tools(&ToolContext::new()).await.unwrap();
    }
    assert_eq!(
        http.received_of("tools/list").len(),
        1,
        "a time of zero is raised to a second"
    );
}

// accept: 99
#[tokio::test]
async fn the_first_use_has_the_token_of_the_caller_and_callers_do_not_share_connections() {
    let http = HttpServer::start(handshake).await;
    let server = client(
        config(&http)
            .with_bearer(SettingValue::context("token"))
            .with_header("x-team", "blue"),
    );
    assert!(http.received().is_empty());
    for token in ["token-of-ada", "token-of-bob", "token-of-ada"] {
        let context = ToolContext::new().with("token", token);
        call_with(&server, "echo", json!({"text": "x"}), &context)
            .await
            .unwrap();
    }
    let tokens = |method: &str| -> Vec<String> {
        let received = http.received_of(method).into_iter();
        received
            .map(|request| request.headers["authorization"].clone())
            .collect()
    };
    assert_eq!(tokens("initialize"), ["Bearer token-of-ada", "Bearer token-of-bob"]);
    assert_eq!(
        tokens("tools/call"),
        ["Bearer token-of-ada", "Bearer token-of-bob", "Bearer token-of-ada"]
    );
    assert!(
        http.received()
            .iter()
            .all(|request| request.headers["x-team"] == "blue")
    );
    let without = server.tools(&ToolContext::new()).await.err().unwrap();
    assert_eq!(without.kind, ErrorKind::MissingKey);
}

#[tokio::test]
async fn calls_do_not_wait_for_each_other() {
    let slow = |request: &Request| {
        let is_slow = request.message["params"]["arguments"]["text"] == "slow";
        if is_slow { None } else { handshake(request) }
    };
    let http = HttpServer::start(slow).await;
    let server = client(config(&http).with_timeout(Duration::from_millis(500)));
    let (slow, fast) = tokio::join!(
        call(&server, "echo", json!({"text": "slow"})),
        call(&server, "echo", json!({"text": "fast"}))
    );
    assert_eq!(slow.unwrap_err().report().kind, ErrorKind::Timeout);
    assert_eq!(fast.unwrap().for_llm, "fast");
}

#[tokio::test]
async fn a_lost_session_is_opened_again_and_the_call_is_repeated() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let of_server = sessions.clone();
    let with_sessions = move |request: &Request| {
        let method = request.message["method"].as_str().unwrap_or_default();
        if method == "initialize" {
            let session = of_server.fetch_add(1, Ordering::Relaxed) + 1;
            return handshake(request).map(|reply| reply.with_header("mcp-session-id", session.to_string()));
        }
        let current = of_server.load(Ordering::Relaxed).to_string();
        let is_lost = method == "tools/call" && request.headers["mcp-session-id"] == "1" || current.is_empty();
        if is_lost {
            Some(Reply::status(404))
        } else {
            handshake(request)
        }
    };
    let http = HttpServer::start(with_sessions).await;
    works(&client(config(&http))).await;
    assert_eq!(sessions.load(Ordering::Relaxed), 2);
    assert_eq!(http.received_of("tools/call").len(), 2);
}

#[tokio::test]
async fn answers_can_be_events_with_progress() {
    let streamed = |request: &Request| {
        if request.message["method"] != "tools/call" {
            return handshake(request);
        }
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": request.message["params"]["_meta"]["progressToken"], "progress": 1}});
        let result = json!({"jsonrpc": "2.0", "id": request.message["id"], "result": echoed(request)});
        Some(Reply::events(&format!(
            ": hello\n\ndata: {progress}\n\nevent: message\ndata: {result}\n\n"
        )))
    };
    let http = HttpServer::start(streamed).await;
    works(&client(config(&http))).await;
}

#[tokio::test]
async fn a_server_that_requires_authorization_says_so() {
    let closed = |_: &Request| Some(Reply::status(401).with_header("www-authenticate", "Bearer realm=\"x\""));
    let http = HttpServer::start(closed).await;
    let error = client(config(&http)).tools(&ToolContext::new()).await.err().unwrap();
    assert!(error.message.contains("it requires a login"), "{error}");
    assert_eq!(
        error.suggestion.as_deref(),
        Some("log in with `LoginRequest`, or set `bearer` or `oauth` of the server")
    );
}

#[tokio::test]
async fn a_server_that_restarts_is_reached_again() {
    let first = Arc::new(AtomicUsize::new(0));
    let restarting = move |request: &Request| {
        if first.fetch_add(1, Ordering::Relaxed) < 2 {
            Some(Reply::status(503))
        } else {
            handshake(request)
        }
    };
    let http = HttpServer::start(restarting).await;
    works(&client(config(&http))).await;
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed() {
    for status in [301, 307, 308] {
        let moved = move |request: &Request| match request.path.as_str() {
            "/mcp" => Some(Reply::status(status).with_header("location", "/mcp/")),
            _ => handshake(request),
        };
        let http = HttpServer::start(moved).await;
        works(&client(config(&http).with_bearer("secret-token"))).await;
        let called = http.received_of("tools/call").pop().unwrap();
        assert_eq!((called.path.as_str(), called.method.as_str()), ("/mcp/", "POST"));
        assert_eq!(called.headers["authorization"], "Bearer secret-token");
    }
    let circle = HttpServer::start(|_| Some(Reply::status(307).with_header("location", "/mcp"))).await;
    let error = client(config(&circle)).tools(&ToolContext::new()).await.err().unwrap();
    assert!(error.message.contains("redirects"), "{error}");
}

// attack: G9
#[tokio::test]
async fn redirects_to_another_origin_are_not_followed() {
    let elsewhere = HttpServer::start(handshake).await;
    let target = elsewhere.url.clone();
    let redirecting = move |_: &Request| Some(Reply::status(307).with_header("location", target.clone()));
    let http = HttpServer::start(redirecting).await;
    let server = client(config(&http).with_bearer("secret-token"));
    let error = server.tools(&ToolContext::new()).await.err().unwrap();
    let named = format!("redirects to `{}`", elsewhere.url);
    assert!(error.message.contains(&named), "{error}");
    assert!(elsewhere.received().is_empty());
}

// attack: G9
#[tokio::test]
async fn endless_bodies_are_given_up() {
    for kind in ["application/json", "text/event-stream"] {
        let endless = move |request: &Request| {
            if request.message["method"] == "tools/call" {
                return Some(Reply::status(200).with_header("content-type", kind).endless());
            }
            handshake(request)
        };
        let http = HttpServer::start(endless).await;
        let error = call(&client(config(&http)), "echo", json!({"text": "x"}))
            .await
            .unwrap_err();
        assert_eq!(error.report().kind, ErrorKind::ToolUnavailable, "{kind}: {error}");
    }
}

// attack: G9, attack: F7
#[tokio::test]
async fn answers_that_are_no_messages_are_errors() {
    let replies: [fn() -> Reply; 6] = [
        || Reply::status(200),
        || Reply::status(200).with_header("content-type", "text/html"),
        || Reply::status(500),
        || Reply::json(&json!([1, 2])),
        || Reply::events("data: {\n\n"),
        || Reply::events("data: {\"jsonrpc\": \"2.0\", \"id\": 999, \"result\": {}}\n\n"),
    ];
    for reply in replies {
        let odd = move |request: &Request| {
            if request.message["method"] == "tools/call" {
                Some(reply())
            } else {
                handshake(request)
            }
        };
        let http = HttpServer::start(odd).await;
        let server = client(
            config(&http)
                .with_revision(RevisionChoice::Handshake)
                .with_timeout(Duration::from_secs(5)),
        );
        let error = call(&server, "echo", json!({"text": "x"})).await.unwrap_err();
        assert_eq!(error.report().kind, ErrorKind::ToolUnavailable, "{error}");
    }
}

#[tokio::test]
async fn a_token_that_comes_back_is_redacted() {
    let echoing = |request: &Request| {
        if request.message["method"] != "tools/call" {
            return handshake(request);
        }
        let text = format!("you sent {}", request.headers["authorization"]);
        Some(Reply::result(
            request,
            &json!({"content": [{"type": "text", "text": text}]}),
        ))
    };
    let http = HttpServer::start(echoing).await;
    let server = client(config(&http).with_bearer("secret-token"));
    let result = call(&server, "echo", json!({"text": "x"})).await.unwrap();
    assert_eq!(result.for_llm, "you sent Bearer [redacted]");
}

#[tokio::test]
async fn a_failed_call_reports_whether_it_may_have_taken_effect() {
    for (status, may_have_effect) in [(500, true), (504, true), (413, false)] {
        let failing = move |request: &Request| {
            if request.message["method"] == "tools/call" {
                Some(Reply::status(status))
            } else {
                handshake(request)
            }
        };
        let http = HttpServer::start(failing).await;
        let error = call(&client(config(&http)), "echo", json!({"text": "x"}))
            .await
            .unwrap_err();
        let message = error.report().message.clone();
        assert_eq!(message.contains("may have taken effect"), may_have_effect, "{message}");
    }
}
