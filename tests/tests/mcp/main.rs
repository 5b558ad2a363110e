//! Real plugins behind the MCP server, as clients use them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod cancellation;
mod client;
mod customer;
mod sessions;

use std::path::Path;

use tempfile::TempDir;
use toolwit::build::{Build, Silent};
use toolwit::{Exposure, Toolwit};
use toolwit_mcp_server::McpServer;
use toolwit_tests::Guests;

/// A server of some plugins, and their directory.
async fn server(plugins: &[(&str, Vec<u8>)]) -> (McpServer, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in plugins {
        std::fs::write(directory.path().join(name).with_extension("wasm"), bytes).unwrap();
    }
    let host = Toolwit::builder().plugins(directory.path()).exposure(Exposure::Flat);
    (McpServer::new(host.build().await.unwrap()), directory)
}

/// Builds the shipped plugin `customers`.
async fn customers() -> Vec<u8> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/customers");
    let out = tempfile::tempdir().unwrap();
    let built = Build::new(project).out(out.path()).run(&Silent).await.unwrap();
    std::fs::read(built.component).unwrap()
}

/// Builds the guest `showcase`.
async fn showcase() -> Vec<u8> {
    Guests::rust_bytes("showcase").await
}
