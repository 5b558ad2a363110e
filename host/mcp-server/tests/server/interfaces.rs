//! User interfaces of plugins: the extension MCP Apps.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{Served, request};
use crate::line_client::{LineClient, meta_with};
use toolwit::Toolwit;
use toolwit::sandbox::CodeCacheLocation;
use toolwit_mcp_server::{HttpOptions, McpServer};

const CHART: &str = r#"(component
    (core module $m (func (export "f") (result i32) i32.const 1))
    (core instance $i (instantiate $m))
    (func (export "draw") (result s32) (canon lift (core func $i "f"))))"#;

const URI: &str = "ui://chart/chart.html";

/// A server with a plugin whose tool has a user interface.
async fn server() -> (McpServer, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let manifest = "[[tools]]\nexport = \"draw\"\nui = \"chart.html\"";
    let document = |_: &str| Ok(Some("<!doctype html><p>a chart</p>".to_owned()));
    let component = wat::parse_str(CHART).unwrap();
    let packed = toolwit::registry::pack(&component, "chart", manifest, "chart.toml", &document).unwrap();
    std::fs::write(directory.path().join("chart.wasm"), packed).unwrap();
    let host = Toolwit::builder()
        .plugins(directory.path())
        .code_cache(CodeCacheLocation::Off);
    (McpServer::new(host.build().await.unwrap()), directory)
}

/// Capabilities of clients, and whether they show user interfaces.
fn clients() -> [(Value, bool); 4] {
    let extension = |settings: Value| json!({"extensions": {"io.modelcontextprotocol/ui": settings}});
    [
        (extension(json!({"mimeTypes": ["text/html;profile=mcp-app"]})), true),
        (extension(json!({})), true),
        (extension(json!({"mimeTypes": ["text/x-later"]})), false),
        (json!({}), false),
    ]
}

/// Checks the tools and the resources that a client was offered.
fn assert_offered(tools: &Value, resources: &Value, shows: bool) {
    let link = &tools["result"]["tools"][0]["_meta"]["ui"]["resourceUri"];
    assert_eq!(link.as_str(), shows.then_some(URI), "{tools}");
    let listed = resources["result"]["resources"].as_array().unwrap();
    let is_listed = listed.iter().any(|resource| resource["uri"] == URI);
    assert_eq!(is_listed, shows, "{resources}");
}

#[tokio::test]
async fn only_clients_that_show_user_interfaces_are_offered_them_over_stdio() {
    for (capabilities, shows) in clients() {
        let (server, _directory) = server().await;
        let mut client = LineClient::session_with(server, capabilities.clone()).await;
        let tools = client.request("1", "tools/list", json!({})).await;
        let resources = client.request("2", "resources/list", json!({})).await;
        assert_offered(&tools, &resources, shows);

        let (server, _directory) = self::server().await;
        let mut client = LineClient::connected_to(server);
        let params = json!({"_meta": meta_with(&capabilities)});
        let tools = client.request("1", "tools/list", params.clone()).await;
        let resources = client.request("2", "resources/list", params).await;
        assert_offered(&tools, &resources, shows);
    }
}

#[tokio::test]
async fn only_clients_that_show_user_interfaces_are_offered_them_over_http() {
    let (server, _directory) = server().await;
    let served = Served::of(server, HttpOptions::new(([127, 0, 0, 1], 0).into())).await;
    for (capabilities, shows) in clients() {
        let session = served.session_with("", capabilities.clone()).await;
        let headers = format!("\nmcp-session-id: {session}\nmcp-protocol-version: 2025-11-25");
        let tools = served.post(&headers, &request("tools/list", json!({}))).await;
        let resources = served.post(&headers, &request("resources/list", json!({}))).await;
        assert_offered(&tools.message(), &resources.message(), shows);

        let ask = async |method: &str| {
            let headers = format!("\nmcp-protocol-version: 2026-07-28\nmcp-method: {method}");
            let params = json!({"_meta": meta_with(&capabilities)});
            served.post(&headers, &request(method, params)).await.message()
        };
        assert_offered(&ask("tools/list").await, &ask("resources/list").await, shows);
    }
}

#[tokio::test]
async fn a_user_interface_that_a_client_knows_is_read() {
    let (server, _directory) = server().await;
    let mut client = LineClient::session_with(server, clients()[0].0.clone()).await;
    let read = client.request("1", "resources/read", json!({"uri": URI})).await;
    assert_eq!(read["result"]["contents"][0]["text"], "<!doctype html><p>a chart</p>");
    let missing = json!({"uri": "ui://chart/other.html"});
    assert!(client.request("2", "resources/read", missing).await["error"].is_object());
}
