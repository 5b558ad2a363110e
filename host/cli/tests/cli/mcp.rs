//! `toolwit mcp install`, and wrong uses of the servers.

use std::fs;

use serde_json::{Value, json};

use crate::support::Workspace;

#[test]
fn a_client_is_configured_and_keeps_its_other_entries() {
    let workspace = Workspace::new().file("client.json", r#"{"mcpServers": {"other": {"command": "x"}}}"#);
    fs::create_dir_all(workspace.path().join("tools")).unwrap();
    let install = [
        "mcp",
        "install",
        "--client",
        "cursor",
        "--plugins",
        "tools",
        "--file",
        "client.json",
    ];
    let shown = workspace.run(&install);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let printed: Value = serde_json::from_str(&shown.stdout).unwrap();
    let arguments = printed["mcpServers"]["toolwit"]["args"].as_array().unwrap();
    assert_eq!(arguments[..2], [json!("mcp"), json!("--plugins")]);
    assert!(arguments[2].as_str().unwrap().ends_with("/tools"), "an absolute path");
    let written = workspace.run(&[&install[..], &["--write"]].concat());
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let text = fs::read_to_string(workspace.path().join("client.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["mcpServers"]["other"], json!({"command": "x"}));
    assert_eq!(file["mcpServers"]["toolwit"], printed["mcpServers"]["toolwit"]);
}

#[test]
fn a_configuration_with_comments_is_left_alone() {
    let workspace = Workspace::new().file("client.json", "{ // mine\n}");
    fs::create_dir_all(workspace.path().join("tools")).unwrap();
    let install = [
        "mcp",
        "install",
        "--client",
        "zed",
        "--plugins",
        "tools",
        "--file",
        "client.json",
        "--write",
    ];
    let refused = workspace.run(&install);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("comments") && refused.stderr.contains("without `--write`"),
        "{}",
        refused.stderr
    );
    assert_eq!(
        fs::read_to_string(workspace.path().join("client.json")).unwrap(),
        "{ // mine\n}"
    );
}

#[test]
fn servers_refuse_missing_directories_and_public_addresses() {
    let workspace = Workspace::new();
    let missing = workspace.run(&["mcp", "--plugins", "nowhere"]);
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("`nowhere` does not exist"),
        "{}",
        missing.stderr
    );
    assert_eq!(missing.stdout, "", "it is the stream of the protocol");
    fs::create_dir_all(workspace.path().join("tools")).unwrap();
    let public = workspace.run(&["serve", "--http", "0.0.0.0:0", "--plugins", "tools"]);
    assert_eq!(public.code, Some(2));
    assert!(public.stderr.contains("no token"), "{}", public.stderr);
}
