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
fn a_client_gets_each_option_and_no_invalid_one() {
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.path().join("tools")).unwrap();
    let install = |options: &[&str]| {
        let install = ["mcp", "install", "--client", "cursor", "--plugins", "tools"];
        workspace.run(&[&install, options].concat())
    };
    let shown = install(&["--store", "tools.db", "--wasi-p3", "--", "--exposure", "search"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let printed: Value = serde_json::from_str(&shown.stdout).unwrap();
    let arguments = printed["mcpServers"]["toolwit"]["args"].as_array().unwrap();
    let store = arguments.iter().position(|argument| argument == "--store").unwrap();
    assert!(
        arguments[store + 1].as_str().unwrap().ends_with("/tools.db"),
        "an absolute path"
    );
    assert_eq!(
        arguments[store + 2..],
        [json!("--wasi-p3"), json!("--exposure"), json!("search")]
    );
    let refused = install(&["--", "--exposur", "search"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused
            .stderr
            .contains("`--` is not valid: unexpected argument '--exposur'"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_configuration_keeps_its_comments_and_one_that_is_no_object_is_left_alone() {
    let workspace = Workspace::new()
        .file("client.json", "{ // mine\n  \"limit\": 1.0,\n}")
        .file("list.json", "[]");
    fs::create_dir_all(workspace.path().join("tools")).unwrap();
    let install = |file: &str| {
        let install = ["mcp", "install", "--client", "zed", "--plugins", "tools", "--write"];
        workspace.run(&[&install[..], &["--file", file]].concat())
    };
    let written = install("client.json");
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let text = fs::read_to_string(workspace.path().join("client.json")).unwrap();
    let start = "{ // mine\n  \"limit\": 1.0,\n  \"context_servers\": {\n    \"toolwit\": {";
    assert!(text.starts_with(start), "{text}");
    let refused = install("list.json");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("not a JSON object") && refused.stderr.contains("without `--write`"),
        "{}",
        refused.stderr
    );
    assert_eq!(fs::read_to_string(workspace.path().join("list.json")).unwrap(), "[]");
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

#[test]
fn a_server_names_the_broken_packages_that_it_does_not_serve() {
    let broken = |number| format!("tools/broken{number}.wasm");
    let workspace = (1..=7).fold(Workspace::new(), |workspace, number| {
        workspace.file(&broken(number), "not a component")
    });
    let served = workspace.run(&["mcp", "--plugins", "tools"]);
    assert_eq!(
        (served.code, served.stdout.as_str()),
        (Some(0), ""),
        "{}",
        served.stderr
    );
    let warnings: Vec<_> = served.stderr.lines().collect();
    assert_eq!(warnings.len(), 6, "{warnings:?}");
    assert!(warnings[0].starts_with("warning: `broken1` is not served: it is not WebAssembly"));
    assert!(warnings[5].contains("2 other broken packages"), "{warnings:?}");
    fs::remove_dir_all(workspace.path().join("tools")).unwrap();
    fs::create_dir(workspace.path().join("tools")).unwrap();
    assert_eq!(workspace.run(&["mcp", "--plugins", "tools"]).stderr, "");
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

/// Asserts that the output answers [`REQUESTS`]. The server may also send notifications.
fn assert_answers(output: &str) {
    let messages = output
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ids: Vec<_> = messages.filter_map(|message| message.get("id").cloned()).collect();
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
    // The command has copies of the server's ends of the sockets.
    drop(server);
    requests.write_all(REQUESTS.as_bytes()).unwrap();
    drop(requests);
    let mut text = String::new();
    answers.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    assert_answers(&text);
}

// Both outputs are one pipe, as after `2>&1` in a shell. Writing an error to it must wait, and not fail.
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

const CHART: &str = r#"(component
    (core module $m (func (export "f") (result i32) i32.const 1))
    (core instance $i (instantiate $m))
    (func (export "draw") (result s32) (canon lift (core func $i "f")))
    (func (export "count") (result s32) (canon lift (core func $i "f"))))"#;

/// Sends messages of revision 2026-07-28 to a server with the plugins of a workspace, and returns the results.
fn results(workspace: &Workspace, requests: &[(&str, Value)]) -> Vec<Value> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/ui": {}}},
    });
    let lines = requests.iter().enumerate().map(|(id, (method, params))| {
        let mut params = params.clone();
        params["_meta"] = meta.clone();
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        )
    });
    let run = workspace.run_with_input(&["mcp", "--plugins", "tools"], &lines.collect::<String>());
    let mut answers: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers.into_iter().map(|mut answer| answer["result"].take()).collect()
}

#[test]
fn a_verbose_server_logs_each_call_without_its_arguments() {
    let workspace = Workspace::with("chart", CHART);
    let client =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let call = |name: &str| json!({"name": name, "arguments": {"secret": "hidden-in-arguments"}});
    let messages = [
        ("initialize", client),
        ("tools/call", json!({"name": "draw"})),
        ("tools/call", call("missing")),
    ];
    let lines = messages.iter().enumerate().map(|(id, (method, params))| {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        format!("{message}\n")
    });
    let lines = lines.collect::<String>();
    let run = workspace.run_with_input(&["mcp", "-v", "--plugins", "tools"], &lines);
    let logged: Vec<_> = run
        .stderr
        .lines()
        .filter(|line| line.contains("a call ended"))
        .collect();
    let line_of = |tool: &str| {
        logged
            .iter()
            .find(|line| line.contains(tool))
            .unwrap_or_else(|| panic!("{run}"))
    };
    for field in [
        "principal=\"local\"",
        "effect=\"read\"",
        "decision=\"allowed\"",
        "outcome=\"ok\"",
        " ms=",
    ] {
        assert!(line_of("tool=\"chart#draw\"").contains(field), "{field} in {run}");
    }
    assert!(line_of("tool=\"missing\"").contains("outcome=\"refused\""), "{run}");
    assert!(!run.stderr.contains("hidden-in-arguments"), "{run}");
    let quiet = workspace.run_with_input(&["mcp", "--plugins", "tools"], &lines);
    assert!(!quiet.stderr.contains("a call ended"), "{quiet}");
}

#[test]
fn a_packed_user_interface_is_linked_and_read() {
    let manifest = "[[tools]]\nexport = \"draw\"\nui = \"chart.html\"";
    let workspace = Workspace::with("chart", CHART)
        .file("chart.toml", manifest)
        .file("chart.html", "<!doctype html><p>a chart</p>");
    let pack = ["pack", "tools/chart.wasm", "--manifest", "chart.toml"];
    let packed = workspace.run(&pack);
    assert_eq!(packed.code, Some(0), "{packed}");
    let read = |uri: &str| ("resources/read", json!({"uri": uri}));
    let found = results(
        &workspace,
        &[
            ("tools/list", json!({})),
            ("resources/list", json!({})),
            read("ui://chart/chart.html"),
            read("ui://chart/../chart.toml"),
            read("ui://other/chart.html"),
        ],
    );
    let links: Vec<_> = found[0]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["_meta"])
        .collect();
    let link = json!({"ui": {"resourceUri": "ui://chart/chart.html"}});
    assert_eq!(links, [&link, &Value::Null], "only `draw` has one: {}", found[0]);
    let listed = found[1]["resources"].as_array().unwrap();
    assert!(
        listed.iter().any(|resource| resource["uri"] == "ui://chart/chart.html"),
        "{listed:?}"
    );
    let contents = &found[2]["contents"][0];
    assert_eq!(contents["text"], "<!doctype html><p>a chart</p>");
    assert_eq!(contents["mimeType"], "text/html;profile=mcp-app");
    assert_eq!(contents.get("_meta"), None, "it may reach no domain");
    assert_eq!((&found[3], &found[4]), (&Value::Null, &Value::Null));
}

#[test]
fn a_manifest_that_names_a_missing_user_interface_is_refused() {
    let manifest = "[[tools]]\nexport = \"draw\"\nui = \"chart.html\"";
    let workspace = Workspace::with("chart", CHART).file("tools/chart.toml", manifest);
    let listed = workspace.run(&["list"]);
    assert!(
        listed.stdout.contains("`chart.html`") && listed.stdout.contains("pack the component again"),
        "{listed}"
    );
    let packed = workspace.run(&["pack", "tools/chart.wasm"]);
    assert_eq!(packed.code, Some(3), "{packed}");
    assert!(packed.stderr.contains("`chart.html` cannot be embedded"), "{packed}");
}
