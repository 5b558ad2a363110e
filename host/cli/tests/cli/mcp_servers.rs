//! The MCP servers that commands use.

use serde_json::json;

use crate::guests::{PLAIN, PLAIN_WIT};
use crate::support::{TOOLWIT, Workspace};

/// Configures this command as a server of the plugins in `tools`, beside other servers.
fn servers(others: &serde_json::Value) -> String {
    let mut servers = json!({"own": {"command": TOOLWIT, "args": ["mcp", "--plugins", "tools"]}});
    let others = others.as_object().cloned().unwrap_or_default();
    servers.as_object_mut().unwrap().extend(others);
    json!({"mcpServers": servers}).to_string()
}

#[test]
fn an_entry_that_cannot_be_used_is_reported_and_the_others_work() {
    let others = json!({
        "old": {"type": "sse", "url": "http://127.0.0.1:1/sse"},
        "two words": {"command": "x"},
        "number": {"command": "x", "env": {"PORT": 8080}},
    });
    let workspace = Workspace::new()
        .file("plugins/plain.wasm", wat::parse_str(PLAIN).unwrap())
        .file("servers.json", format!("\u{feff}{}", servers(&others)));
    let listed = workspace.run(&["list", "--plugins", "plugins", "--mcp", "servers.json"]);
    assert_eq!(listed.code, Some(0), "{listed}");
    for line in [
        "own  process",
        "number  process",
        "invalid:",
        "the transport `sse` is not supported",
    ] {
        assert!(listed.stdout.contains(line), "{line}: {listed}");
    }
    assert_eq!(listed.stdout.matches("invalid:").count(), 2, "{listed}");
    let searched = workspace.run(&["search", "greet", "--plugins", "plugins", "--mcp", "servers.json"]);
    assert_eq!(searched.code, Some(0), "{searched}");
    assert!(
        searched.stderr.contains("the MCP server `old` cannot be configured"),
        "{searched}"
    );
}

#[test]
fn a_search_contacts_servers_only_if_asked() {
    let workspace = Workspace::with("plain", PLAIN)
        .file("tools/plain.wit", PLAIN_WIT)
        .file("servers.json", servers(&json!({})));
    std::fs::create_dir(workspace.path().join("none")).unwrap();
    let search = ["search", "greet", "--plugins", "none", "--mcp", "servers.json"];
    let local = workspace.run(&search);
    assert!(
        local.stdout.is_empty() && local.stderr.contains("`--contact` searches"),
        "{local}"
    );
    let contacted = workspace.run(&[&search[..], &["--contact"]].concat());
    assert!(contacted.stdout.contains("mcp:own#greet"), "{contacted}");
    let (_, document) = workspace.json(&[&search[..], &["--contact", "--json"]].concat());
    assert_eq!(document["hits"][0]["server"], "own", "{document}");
}

#[cfg(unix)]
#[test]
fn the_last_words_of_a_server_that_fails_are_shown() {
    let workspace = Workspace::new()
        .program("failing", "echo 'missing API key FOO_KEY' >&2; exit 3")
        .file("mcp.toml", "[mcp.f]\ncommand = 'failing'\nrevision = '2025-11-25'\n");
    for command in [&["list", "--contact"][..], &["call", "mcp:f#healthy"]] {
        let run = workspace.run(&[command, &["--mcp", "mcp.toml"]].concat());
        let output = format!("{}{}", run.stdout, run.stderr);
        assert!(
            output.contains("its standard error ends with `missing API key FOO_KEY`"),
            "{run}"
        );
        assert!(!run.stderr.contains("worker quit"), "{run}");
    }
}

#[test]
fn a_byte_order_mark_before_arguments_is_skipped() {
    let workspace = Workspace::with("plain", PLAIN).file("arguments.json", "\u{feff}{\"a\": 1, \"b\": 2}");
    let called = workspace.run(&["call", "add", "@arguments.json"]);
    assert_eq!(called.stdout.trim(), "3", "{called}");
}
