//! `toolwit mcp install`, and wrong uses of the servers.

use std::fs;
use std::io::{Read, Write};
#[cfg(unix)]
use std::os::{fd::OwnedFd, unix::net::UnixStream};
use std::process::Stdio;

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

/// The first messages of a client. The input ends after them.
const REQUESTS: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
    "\n",
);

/// Asserts that the output answers [`REQUESTS`].
fn assert_answers(output: &str) {
    let messages = output
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ids: Vec<_> = messages.map(|message| message["id"].clone()).collect();
    assert_eq!(ids, [json!(1), json!(2)], "{output}");
}

#[test]
fn the_standard_streams_may_be_files() {
    let workspace = Workspace::new().file("requests.jsonl", REQUESTS);
    let input = fs::File::open(workspace.path().join("requests.jsonl")).unwrap();
    let output = fs::File::create_new(workspace.path().join("answers.jsonl")).unwrap();
    let mut server = workspace.command(&["mcp", "--plugins", "tools"]);
    assert!(server.stdin(input).stdout(output).status().unwrap().success());
    assert_answers(&fs::read_to_string(workspace.path().join("answers.jsonl")).unwrap());
}

#[cfg(unix)]
#[test]
fn the_standard_streams_may_be_sockets() {
    let workspace = Workspace::new();
    let (mut requests, input) = UnixStream::pair().unwrap();
    let (mut answers, output) = UnixStream::pair().unwrap();
    let mut server = workspace.command(&["mcp", "--plugins", "tools"]);
    server.stdin(OwnedFd::from(input)).stdout(OwnedFd::from(output));
    let mut child = server.spawn().unwrap();
    // It holds the server's ends of the sockets.
    drop(server);
    requests.write_all(REQUESTS.as_bytes()).unwrap();
    drop(requests);
    let mut text = String::new();
    answers.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    assert_answers(&text);
}

// As a shell starts it with `2>&1`: an error must not meet a pipe that does not wait.
#[test]
fn output_and_errors_may_be_one_pipe() {
    let workspace = Workspace::new();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut server = workspace.command(&["mcp", "--plugins", "tools"]);
    server.stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut child = server.stdin(Stdio::piped()).spawn().unwrap();
    drop(server);
    child.stdin.take().unwrap().write_all(REQUESTS.as_bytes()).unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    assert_answers(&text);
}
