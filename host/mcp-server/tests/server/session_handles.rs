//! Entities of clients that begin a session for each call.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{Served, request};
use crate::line_client::LineClient;
use toolwit::Toolwit;
use toolwit::sandbox::CodeCacheLocation;
use toolwit_mcp_server::{AccessToken, HttpOptions, McpServer, Principal};

const ADA: &str = "ada-0123456789abcdef0123";
const BOB: &str = "bob-0123456789abcdef0123";

/// A component with a resource: each cart counts the calls of its method.
const CARTS: &str = r#"(component
    (type $cart-rep (resource (rep i32)))
    (core func $new (canon resource.new $cart-rep))
    (core module $m
        (import "host" "new" (func $new (param i32) (result i32)))
        (memory 1)
        (func (export "open") (result i32) (call $new (i32.const 8)))
        (func (export "add") (param i32) (result i32)
            (i32.store (local.get 0) (i32.add (i32.load (local.get 0)) (i32.const 1)))
            (i32.load (local.get 0))))
    (core instance $host (export "new" (func $new)))
    (core instance $i (instantiate $m (with "host" (instance $host))))
    (export $cart "cart" (type $cart-rep))
    (func (export "open-cart") (result (own $cart)) (canon lift (core func $i "open")))
    (func (export "[method]cart.add") (param "self" (borrow $cart)) (result u32) (canon lift (core func $i "add"))))"#;

async fn host() -> (Toolwit, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("shop.wasm"), wat::parse_str(CARTS).unwrap()).unwrap();
    let host = Toolwit::builder()
        .plugins(directory.path())
        .code_cache(CodeCacheLocation::Off);
    (host.build().await.unwrap(), directory)
}

/// Calls a tool in a session of its own, which then ends, and returns the result.
async fn call(served: &Served, token: &str, tool: &str, arguments: Value) -> Value {
    let authorization = format!("\nauthorization: Bearer {token}");
    let session = served.session(&authorization).await;
    let headers = format!("{authorization}\nmcp-session-id: {session}\nmcp-protocol-version: 2025-11-25");
    let params = json!({"name": tool, "arguments": arguments});
    let answer = served.post(&headers, &request("tools/call", params)).await.message();
    let head = format!("DELETE /mcp HTTP/1.1\nhost: localhost{headers}");
    assert_eq!(served.send(&head, "").await.status, 200);
    answer["result"].clone()
}

#[tokio::test]
async fn a_method_is_called_in_another_session_with_the_handle_of_its_entity() {
    let (host, _directory) = host().await;
    let token = |text, name: &str| AccessToken::new(text, Principal::new(name, host.clone())).unwrap();
    let options = HttpOptions::new(([127, 0, 0, 1], 0).into());
    let options = options.with_token(token(ADA, "ada")).with_token(token(BOB, "bob"));
    let served = Served::of(McpServer::new(host.clone()), options).await;
    let cart = call(&served, ADA, "open_cart", json!({})).await["structuredContent"].clone();
    let handle = &cart["handle"];
    assert!(handle.as_str().unwrap().starts_with("cart_"), "{cart}");
    let bound_name = &cart["available_tools"][0];

    let by_bound_name = json!({"name": bound_name, "arguments": {"cart": handle}});
    let first = call(&served, ADA, "call_tool", by_bound_name.clone()).await;
    assert_eq!(first["content"][0]["text"], "1", "{first}");
    let by_type = json!({"name": "cart_add", "arguments": {"cart": handle}});
    let second = call(&served, ADA, "call_tool", by_type.clone()).await;
    assert_eq!(second["content"][0]["text"], "2", "the same cart: {second}");
    let directly = call(&served, ADA, "cart_add", json!({"cart": handle})).await;
    assert_eq!(directly["content"][0]["text"], "3", "{directly}");

    for arguments in [by_bound_name, by_type, json!({"name": bound_name})] {
        let refused = call(&served, BOB, "call_tool", arguments.clone()).await;
        assert_eq!(refused["isError"], true, "of another caller: {arguments} {refused}");
    }
    let unknown = call(&served, ADA, "call_tool", json!({"name": bound_name})).await;
    assert_eq!(unknown["isError"], true, "without a handle: {unknown}");
}

#[tokio::test]
async fn an_entity_is_used_in_its_own_session_with_and_without_its_handle() {
    let (host, _directory) = host().await;
    let mut client = LineClient::session_with(McpServer::new(host), json!({})).await;
    assert!(client.tool_names().await.contains(&"call_tool".to_owned()));
    let cart = client.call("open_cart").await["result"]["structuredContent"].clone();
    let name = cart["available_tools"][0].as_str().unwrap().to_owned();
    assert!(client.tool_names().await.contains(&name));
    for (tool, arguments) in [
        (name.as_str(), json!({"cart_id": cart["id"]})),
        (name.as_str(), json!({"cart_id": cart["handle"]})),
        (name.as_str(), json!({"cart": cart["handle"]})),
        (
            "call_tool",
            json!({"name": name, "arguments": {"cart": cart["handle"]}}),
        ),
        ("call_tool", json!({"name": name, "arguments": {"cart_id": cart["id"]}})),
    ] {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = client.request("call", "tools/call", params).await;
        assert_ne!(answer["result"]["isError"], true, "{tool} {arguments} {answer}");
        assert!(answer["error"].is_null(), "{tool} {arguments} {answer}");
    }
    let last = json!({"name": name, "arguments": {"cart_id": cart["id"]}});
    let last = client.request("call", "tools/call", last).await;
    assert_eq!(last["result"]["content"][0]["text"], "6", "the same cart: {last}");
}

#[tokio::test]
async fn call_tool_is_listed_only_for_plugins_with_entities() {
    let mut client = LineClient::session().await;
    assert!(!client.tool_names().await.contains(&"call_tool".to_owned()));
    let unknown = client.call("call_tool").await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}
