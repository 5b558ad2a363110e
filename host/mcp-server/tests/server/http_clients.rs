//! Clients over HTTP: browsers, clients in Python, and clients of earlier revisions.

use serde_json::{Value, json};

use crate::http::{Served, call_hello, request};
use crate::{server, tools};
use toolwit::tool::ToolResult;
use toolwit::{NativeTool, Toolwit};
use toolwit_mcp_server::{AccessToken, HttpOptions, McpServer, Principal};

const TOKEN: &str = "ada-0123456789abcdef0123";
const APP: &str = "https://app.example.com";

async fn serve(options: impl FnOnce(HttpOptions) -> HttpOptions) -> Served {
    Served::of(server().await, options(HttpOptions::new(([127, 0, 0, 1], 0).into()))).await
}

async fn session(served: &Served) -> String {
    let session = served.session("").await;
    format!("\nmcp-session-id: {session}")
}

// attack: G1
#[tokio::test]
async fn a_browser_may_use_the_server_from_an_allowed_origin_only() {
    let host = Toolwit::builder().tools(tools()).build().await.unwrap();
    let token = AccessToken::new(TOKEN, Principal::new("ada", host)).unwrap();
    let served = serve(|options| options.with_token(token).with_origin(APP)).await;
    let ask = async |origin: &str| {
        let preflight = "access-control-request-method: POST\naccess-control-request-headers: Authorization, content-type, mcp-protocol-version, x-evil";
        let head = format!("OPTIONS /mcp HTTP/1.1\nhost: localhost\norigin: {origin}\n{preflight}");
        served.send(&head, "").await
    };
    let allowed = ask(APP).await;
    assert_eq!(allowed.status, 204, "{}", allowed.message_text());
    assert_eq!(allowed.header("access-control-allow-origin"), Some(APP));
    assert_eq!(
        allowed.header("access-control-allow-headers"),
        Some("authorization, content-type, mcp-protocol-version")
    );
    assert_eq!(
        allowed.header("access-control-allow-methods"),
        Some("get, post, delete")
    );
    let refused = ask("https://evil.example.com").await;
    assert_eq!(
        (refused.status, refused.header("access-control-allow-origin")),
        (403, None)
    );

    let unauthorized = served.post(&format!("\norigin: {APP}"), &call_hello()).await;
    assert_eq!(unauthorized.status, 401);
    assert_eq!(
        unauthorized.header("access-control-allow-origin"),
        Some(APP),
        "the page reads the challenge"
    );
    let headers = format!("\norigin: {APP}\nauthorization: Bearer {TOKEN}");
    let initialize =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}});
    let begun = served.post(&headers, &request("initialize", initialize)).await;
    assert_eq!(begun.status, 200);
    assert_eq!(begun.header("access-control-allow-origin"), Some(APP));
    let exposed = begun.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("mcp-session-id"), "{exposed}");
    let program = served
        .post(&format!("\nauthorization: Bearer {TOKEN}"), &call_hello())
        .await;
    assert_eq!(program.header("access-control-allow-origin"), None, "not a page");
}

// attack: G1
#[tokio::test]
async fn a_foreign_authority_in_the_request_line_is_refused() {
    let served = serve(|options| options).await;
    let foreign = served
        .send("GET http://evil.com/healthz HTTP/1.1\nhost: localhost", "")
        .await;
    assert_eq!(foreign.status, 403);
    let own = served
        .send("GET http://localhost/healthz HTTP/1.1\nhost: localhost", "")
        .await;
    assert_eq!(own.status, 200);
}

#[tokio::test]
async fn the_end_of_a_session_is_confirmed_with_200() {
    let served = serve(|options| options).await;
    let session = session(&served).await;
    let head = format!("DELETE /mcp HTTP/1.1\nhost: localhost{session}");
    assert_eq!(served.send(&head, "").await.status, 200);
    assert_eq!(served.post(&session, &call_hello()).await.status, 404, "it has ended");
}

// attack: G3
#[tokio::test]
async fn a_malformed_body_is_answered_with_an_error_of_the_protocol() {
    let served = serve(|options| options).await;
    let session = session(&served).await;
    let types = "content-type: application/json\naccept: application/json, text/event-stream";
    let post = async |headers: &str, body: &str| {
        let head = format!("POST /mcp HTTP/1.1\nhost: localhost\n{types}{headers}");
        served.send(&head, body).await
    };
    let initialize =
        r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    for (headers, body, code, id) in [
        (&*session, "{", -32700, Value::Null),
        (
            &*session,
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            -32600,
            json!(1),
        ),
        (
            &*session,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            -32602,
            json!(1),
        ),
        (
            &*session,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":5}"#,
            -32600,
            Value::Null,
        ),
        ("", initialize, -32602, json!(7)),
        (
            "",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            -32600,
            Value::Null,
        ),
    ] {
        let answer = post(headers, body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert_eq!(answer.header("content-type"), Some("application/json"), "{body}");
        let message = answer.message();
        assert_eq!(
            (&message["error"]["code"], &message["id"]),
            (&json!(code), &id),
            "{body} {message}"
        );
    }
    let unknown = post(
        "\nmcp-session-id: 00000000-0000-4000-8000-000000000000",
        &call_hello().to_string(),
    )
    .await;
    assert_eq!(
        (unknown.status, &unknown.message()["error"]["code"]),
        (404, &json!(-32600))
    );
    assert_eq!(post(&session, &call_hello().to_string()).await.status, 200);
}

#[tokio::test]
async fn batches_are_answered_in_revision_2025_03_26_only() {
    let served = serve(|options| options).await;
    let session = session(&served).await;
    let call = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "hello"}});
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = served
        .post(&session, &json!([call(1), notification, {"id": 2}, call(3)]))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.message_text());
    let events = answer
        .message_text()
        .lines()
        .filter_map(|line| line.strip_prefix("data:"));
    let messages = events.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
    let mut ids: Vec<_> = messages
        .map(|message| (message["id"].clone(), message["result"].is_object()))
        .collect();
    ids.sort_by_key(|(id, _)| id.as_u64());
    assert_eq!(ids, [(json!(1), true), (json!(2), false), (json!(3), true)]);
    let many: Vec<_> = (0..65).map(call).collect();
    assert_eq!(served.post(&session, &json!(many)).await.status, 413);
    let accepted = served.post(&session, &json!([notification])).await;
    assert_eq!(accepted.status, 202);
    let later = format!("{session}\nmcp-protocol-version: 2025-11-25");
    let refused = served.post(&later, &json!([call(1)])).await;
    assert_eq!(
        (refused.status, &refused.message()["error"]["code"]),
        (400, &json!(-32600))
    );
}

#[tokio::test]
async fn a_long_result_is_sent_in_one_event_of_less_than_a_megabyte() {
    let schema = json!({"type": "object", "properties": {}});
    let long = NativeTool::new("long", "Returns a long value.", schema, |_, _| async {
        Ok(ToolResult::value(json!({"text": "x".repeat(700 << 10)})))
    });
    let host = Toolwit::builder().tool(long.unwrap()).build().await.unwrap();
    let served = Served::of(McpServer::new(host), HttpOptions::new(([127, 0, 0, 1], 0).into())).await;
    let session = format!("{}\nmcp-protocol-version: 2025-11-25", session(&served).await);
    let answer = served
        .post(&session, &request("tools/call", json!({"name": "long"})))
        .await;
    let event = answer.message_text().lines().map(str::len).max().unwrap();
    assert!((700 << 10..1 << 20).contains(&event), "{event}");
    assert!(
        answer.message()["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("xxx")
    );
}
