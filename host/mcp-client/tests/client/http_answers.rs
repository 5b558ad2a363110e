//! Answers over HTTP that are not quite messages of the protocol.

use serde_json::{Value, json};
use toolwit_mcp_client::{ClientOptions, McpServer, ServerConfig};

use crate::http_server::{HttpServer, Reply, Request, echoed, handshake};
use crate::{call, works};

fn client(http: &HttpServer) -> McpServer {
    let config = ServerConfig::http("test", &http.url).unwrap();
    McpServer::new(config, ClientOptions::default())
}

#[tokio::test]
async fn a_compressed_answer_is_reported() {
    let compressed = |request: &Request| match request.message["method"].as_str() {
        Some("tools/call") => Some(Reply::result(request, &echoed(request)).with_header("content-encoding", "gzip")),
        _ => handshake(request),
    };
    let http = HttpServer::start(compressed).await;
    let error = call(&client(&http), "echo", json!({"text": "x"})).await.unwrap_err();
    assert!(error.report().message.contains("compressed body"), "{error}");
    assert_eq!(http.received_of("tools/call")[0].headers["accept-encoding"], "identity");
}

#[tokio::test]
async fn answers_of_careless_servers_are_used() {
    let replies: [fn(&Value) -> Reply; 7] = [
        |message| Reply::events(&format!("data: {message}")),
        |message| Reply::text("text/plain", &message.to_string()),
        |message| Reply::json(&json!([message])),
        |message| Reply::text("application/json; charset=utf-8", &format!("\u{feff}{message}")),
        |message| Reply::text("Application/JSON", &message.to_string()),
        |message| Reply::text("Text/Event-Stream; charset=UTF-8", &format!("data: {message}\n\n")),
        |message| Reply::events(&format!("data: [{message}]\n\n")),
    ];
    for reply in replies {
        let careless = move |request: &Request| {
            if request.message["method"] != "tools/call" {
                return handshake(request);
            }
            let message = json!({"jsonrpc": "2.0", "id": request.message["id"], "result": echoed(request)});
            Some(reply(&message))
        };
        let http = HttpServer::start(careless).await;
        works(&client(&http)).await;
    }
}

// attack: G9
#[tokio::test]
async fn an_answer_that_is_not_a_message_ends_its_request_at_once() {
    type Answer = fn(&Value) -> Reply;
    let answers: [(&str, Answer); 6] = [
        ("not JSON", |_| {
            Reply::text("application/json", "{\"jsonrpc\": \"2.0\", \"result\": NaN}")
        }),
        ("another request", |_| {
            Reply::json(&json!({"jsonrpc": "2.0", "id": 9_999, "result": {}}))
        }),
        ("`jsonrpc`", |id| Reply::json(&json!({"id": id, "result": {}}))),
        ("not JSON", |id| {
            Reply::events(&format!(
                "data: {{\"jsonrpc\": \"2.0\", \"id\": {id}, \"result\": NaN}}\n\n"
            ))
            .endless()
        }),
        ("neither", |id| {
            Reply::events(&format!("data: {{\"jsonrpc\": \"2.0\", \"id\": {id}}}\n\n")).endless()
        }),
        ("nested deeper", |_| {
            let deep = format!("{}{}", "[".repeat(400), "]".repeat(400));
            Reply::text(
                "application/json",
                &format!("{{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {deep}}}"),
            )
        }),
    ];
    for (why, answer) in answers {
        let http = HttpServer::start(move |request: &Request| match request.message["method"].as_str() {
            Some("tools/call") => Some(answer(&request.message["id"])),
            _ => handshake(request),
        })
        .await;
        let error = call(&client(&http), "echo", json!({"text": "x"})).await.unwrap_err();
        let message = &error.report().message;
        assert!(
            message.contains(why) && message.ends_with("it may have taken effect"),
            "{message}"
        );
    }
}
