//! The memory of the client under the largest messages that a server may send.
//!
//! It is a test program of its own, because it measures the process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use toolwit_agent::ToolSource;
use toolwit_core::limits::{MCP_MESSAGE_BYTES_MAX, MCP_TOOLS_MAX};
use toolwit_core::{Arguments, ToolContext};
use toolwit_mcp_client::{ClientOptions, McpServer, ServerConfig};

const MIB: u64 = 1 << 20;

/// The memory that the client may take in addition to the size of a message.
const ALLOWANCE_BYTES: u64 = 64 * MIB;

/// Reads a line of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let kib: u64 = line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().unwrap();
    kib << 10
}

/// Returns the resident memory, and sets the recorded peak to it.
fn begin_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    status("VmRSS")
}

fn server(behaviour: &str) -> McpServer {
    let program = env!("CARGO_BIN_EXE_mcp-test-server");
    let config = ServerConfig::process("test", program)
        .unwrap()
        .with_arguments([behaviour]);
    McpServer::new(config, ClientOptions::default())
}

// attack: G16
#[tokio::test]
async fn the_largest_messages_of_a_server_take_their_size_and_64_mib() {
    let allowed = MCP_MESSAGE_BYTES_MAX as u64 + ALLOWANCE_BYTES;
    let context = ToolContext::new();
    for behaviour in ["large-text", "large-image", "many-texts", "many-objects"] {
        let server = server(behaviour);
        let tools = server.tools(&context).await.unwrap();
        let tool = tools.iter().find(|tool| tool.definition().name() == "meta").unwrap();
        let before = begin_peak();
        // Some are too large as a result, and refused as such.
        let outcome = tool.call(Arguments::new(), &context).await;
        let grown = status("VmHWM").saturating_sub(before);
        let outcome = outcome.map(drop).map_err(|error| error.to_string());
        let is_read = outcome
            .as_ref()
            .map_or_else(|error| error.contains("the result has"), |()| true);
        assert!(is_read, "{behaviour}: {outcome:?}");
        assert!(grown <= allowed, "{behaviour}: {} MiB", grown / MIB);
    }
    let server = server("long-list");
    let before = begin_peak();
    let tools = server.tools(&context).await.unwrap();
    let grown = status("VmHWM").saturating_sub(before);
    assert_eq!(tools.len(), MCP_TOOLS_MAX);
    assert!(grown <= allowed, "a list of tools: {} MiB", grown / MIB);
}
