//! The server that the conformance suites of the Model Context Protocol test: plugins, the content of `content.toml`, and native tools for
//! what a plugin cannot do, such as to ask the model of the client.
//!
//! ```sh
//! toolwit build tests/guests/rust/showcase --out plugins
//! cargo run -p toolwit-mcp-server --example conformance_server -- 127.0.0.1:8080 plugins
//! ```

#![allow(clippy::print_stderr, reason = "a program for the terminal")]

mod client_tools;
mod forms;
mod server_tools;
mod task_tools;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolwit::grants::{GrantRules, GrantScope, GrantedVersion};
use toolwit::registry::WatchOptions;
use toolwit::sandbox::NewGrant;
use toolwit::{Error, Exposure, Toolwit};
use toolwit_mcp_server::{HttpListener, HttpOptions, McpServer, Principal, ServedContent};

/// The server, for the tools that change it.
static SERVER: OnceLock<McpServer> = OnceLock::new();

/// Returns the content of `content.toml`.
fn content() -> Result<ServedContent, Error> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/conformance_server");
    ServedContent::read(&directory.join("content.toml"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(plugins)) = (arguments.next(), arguments.next()) else {
        return Err("usage: conformance_server ADDRESS|stdio PLUGINS".into());
    };
    let plugins = PathBuf::from(plugins);
    let watch = WatchOptions {
        poll_every: Duration::from_millis(200),
        quiet: Duration::from_millis(50),
        ..WatchOptions::default()
    };
    let grant = NewGrant {
        plugin: "showcase".to_owned(),
        version: GrantedVersion::Any,
        scope: GrantScope::Always,
        rules: GrantRules {
            ask: true,
            ..GrantRules::default()
        },
    };
    let host = Toolwit::builder()
        .plugins(&plugins)
        .grant(grant)
        .tools(client_tools::tools()?)
        .tools(server_tools::tools(&plugins)?)
        .tools(task_tools::tools()?)
        .exposure(Exposure::Flat)
        .watch(watch)
        .build()
        .await?;
    let principal = Principal::new("local", host).with_task_support(task_tools::support);
    let server = McpServer::for_principal(principal).with_content(content()?);
    let server = SERVER.get_or_init(|| server);
    if address == "stdio" {
        server.serve_stdio(CancellationToken::new()).await?;
        return Ok(());
    }
    let listener = HttpListener::bind(HttpOptions::new(address.parse()?)).await?;
    eprintln!("listening on {}", listener.url());
    listener.serve(server, CancellationToken::new()).await;
    Ok(())
}
