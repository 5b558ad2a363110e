//! `toolwit add` from URLs and package indexes, served on loopback.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::guests::{PLAIN, SETTINGS};
use crate::support::{Run, TOOLWIT, Workspace, accept};

/// The SHA-256 digest of [`PLAIN`].
fn plain_digest(workspace: &Workspace) -> String {
    let (_, document) = workspace.json(&["inspect", "plain.wasm", "--json"]);
    document["digest"].as_str().unwrap().to_owned()
}

/// Serves files by path until the process ends. Returns the base URL.
fn serve(files: HashMap<&'static str, Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let request = lines.next().unwrap_or_default();
            // The rest of the request is read before the response, so that the connection is not reset.
            lines.find(String::is_empty);
            let path = request.split(' ').nth(1).unwrap_or_default();
            let (status, body) = match files.get(path) {
                Some(body) => ("200 OK", body.as_slice()),
                None => ("404 Not Found", &[][..]),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = (&stream)
                .write_all(head.as_bytes())
                .and_then(|()| (&stream).write_all(body));
        }
    });
    base
}

/// Serves an index with `plain` 1.0.0 and 1.1.0, and a `settings` whose digest is wrong. Returns its URL.
fn serve_index(digest: &str) -> String {
    let plain = wat::parse_str(PLAIN).unwrap();
    let settings = wat::parse_str(SETTINGS).unwrap();
    let entry = |name: &str, version: &str, bytes: usize| json!({"name": name, "version": version, "url": format!("{name}.wasm"), "sha256": digest, "bytes": bytes});
    let packages = [
        entry("plain", "1.0.0", plain.len()),
        entry("plain", "1.1.0", plain.len()),
        entry("settings", "1.0.0", settings.len()),
    ];
    let index = json!({"format": 1, "packages": packages}).to_string().into_bytes();
    let base = serve(HashMap::from([
        ("/index.json", index),
        ("/junk.json", b"<html>".to_vec()),
        ("/plain.wasm", plain),
        ("/settings.wasm", settings),
    ]));
    format!("{base}/index.json")
}

fn workspace() -> Workspace {
    Workspace::new().file("plain.wasm", wat::parse_str(PLAIN).unwrap())
}

/// Returns the output of a run without the port of the server and the digest.
fn normalized_output(run: &Run, index: &str, digest: &str) -> String {
    let base = index.trim_end_matches("/index.json");
    run.to_string().replace(base, "http://…").replace(digest, "DIGEST")
}

fn added_files(workspace: &Workspace) -> usize {
    fs::read_dir(workspace.path().join("tools")).unwrap().count()
}

#[test]
fn package_of_the_index_is_added_by_its_name() {
    let workspace = workspace();
    let digest = plain_digest(&workspace);
    let index = serve_index(&digest);
    let added = workspace.run(&["add", "plain", "--index", &index]);
    assert_snapshot!(normalized_output(&added, &index, &digest), @"
    exit: 0

    --- stdout
    tools/plain.wasm

    --- stderr
    added plain: 6 tools, version 1.1.0, from http://…/plain.wasm
    ");
    assert_eq!(workspace.run(&["call", "add", "a=1", "b=2"]).stdout, "3\n");
    let replace = ["add", "plain@1.0", "--index", &index, "--replace", "--json"];
    let (code, document) = workspace.json(&replace);
    assert_eq!(
        (code, &document["added"][0]["version"]),
        (Some(0), &json!("1.0.0")),
        "{document}"
    );
    assert_eq!(document["added"][0]["digest"], json!(digest));
}

#[test]
fn index_is_configured_by_the_environment_the_user_and_an_accepted_project() {
    let plain = workspace();
    let index = serve_index(&plain_digest(&plain));
    let settings = format!("url = \"{index}\"\n");
    let configured = [
        workspace().variable("TOOLWIT_INDEX", index.as_str()),
        workspace().file(".home/.config/toolwit/index.toml", &settings),
    ];
    for workspace in configured {
        let added = workspace.run(&["add", "plain"]);
        assert_eq!(added.code, Some(0), "{added}");
    }
    let project = workspace().file("toolwit.toml", format!("[index]\n{settings}"));
    let proposed = project.run(&["add", "plain"]);
    assert!(
        proposed.code == Some(2) && proposed.stderr.contains("no package index") && proposed.stderr.contains("trust"),
        "anyone may be the author of a project: {proposed}"
    );
    let shown = project.run(&["trust"]);
    assert!(shown.stdout.contains(&index), "{shown}");
    accept(&project);
    assert_eq!(project.run(&["add", "plain"]).code, Some(0));
    let changed = project.file("toolwit.toml", format!("[index]\nurl = \"{index}?other\"\n"));
    let refused = changed.run(&["add", "plain", "--replace"]);
    assert!(refused.stderr.contains("have changed"), "{refused}");
    assert_snapshot!(plain.run(&["add", "plain"]), @"
    exit: 2

    --- stderr
    error: there is no file or directory `plain`, and no package index is configured
    hint: name an existing component file, or set a package index with `--index URL`
    ");
}

#[test]
fn wrong_content_name_or_version_is_refused_and_nothing_is_added() {
    let workspace = workspace();
    let digest = plain_digest(&workspace);
    let index = serve_index(&digest);
    let settings = workspace.run(&["add", "settings", "--index", &index]);
    assert!(
        settings.code == Some(2) && settings.stderr.contains("instead of"),
        "{settings}"
    );
    let unknown = workspace.run(&["add", "plane", "--index", &index]);
    assert_snapshot!(normalized_output(&unknown, &index, &digest), @"
    exit: 2

    --- stderr
    error: the package index `http://…/index.json` does not list `plane`
    hint: check the name, or use another index with `--index URL`
    ");
    assert_snapshot!(workspace.run(&["add", "plain@2", "--index", &index]), @"
    exit: 2

    --- stderr
    error: the package index has no version `=2` of `plain`
    hint: it lists 1.0.0, 1.1.0
    ");
    let pinned = format!("{index}#sha256={digest}");
    let other = workspace.run(&["add", "plain", "--index", &pinned]);
    assert!(other.code == Some(2) && other.stderr.contains("instead of"), "{other}");
    let junk = workspace.run(&["add", "plain", "--index", &index.replace("index.json", "junk.json")]);
    assert!(junk.code == Some(2) && junk.stderr.contains("cannot be used"), "{junk}");
    let plain_http = workspace.run(&["add", "plain", "--index", "http://example.com/index.json"]);
    assert!(
        plain_http.code == Some(2) && plain_http.stderr.contains("not encrypted"),
        "{plain_http}"
    );
    assert_eq!(added_files(&workspace), 0);
}

#[test]
fn url_is_added_with_its_digest() {
    let workspace = workspace();
    let digest = plain_digest(&workspace);
    let index = serve_index(&digest);
    let url = index.replace("index.json", "plain.wasm");
    let unpinned = workspace.run(&["add", &url]);
    assert_snapshot!(normalized_output(&unpinned, &index, &digest), @"
    exit: 2

    --- stderr
    error: the URL `http://…/plain.wasm` has no digest; its content has 576 bytes and the SHA-256 digest DIGEST
    hint: compare the digest with the one that its author publishes; then `toolwit add http://…/plain.wasm#sha256=DIGEST`
    ");
    assert_eq!(added_files(&workspace), 0);
    let added = workspace.run(&["add", &format!("{url}#sha256={digest}")]);
    assert_eq!(
        (added.code, added.stdout.as_str()),
        (Some(0), "tools/plain.wasm\n"),
        "{added}"
    );
}

#[test]
fn requested_capabilities_of_a_download_are_reported() {
    let workspace = Workspace::new().file("plain.wasm", wat::parse_str(SETTINGS).unwrap());
    let digest = plain_digest(&workspace);
    let url = serve_index(&digest).replace("index.json", "settings.wasm");
    let added = workspace.run(&["add", &format!("{url}#sha256={digest}")]);
    assert!(
        added.code == Some(0) && added.stderr.contains("toolwit grant settings"),
        "{added}"
    );
}

#[test]
fn shipped_plugins_are_listed_and_an_unknown_name_lists_them() {
    let workspace = Workspace::new();
    let listed = workspace.run(&["add", "--shipped"]);
    assert_eq!(listed.code, Some(0), "{listed}");
    assert!(listed.stdout.contains("\nfiles "), "{listed}");
    assert!(listed.stdout.contains("  reads, lists, searches and edits"), "{listed}");
    let document: Value = serde_json::from_str(&workspace.run(&["add", "--shipped", "--json"]).stdout).unwrap();
    assert_eq!(document["shipped"][0]["name"], "calc");

    let unknown = workspace.run(&["add", "--shipped", "filez"]);
    assert_eq!(unknown.code, Some(2), "{unknown}");
    assert!(
        unknown.stderr.contains("no plugin `filez` ships with Toolwit"),
        "{unknown}"
    );
    assert!(unknown.stderr.contains("customers, files"), "{unknown}");
    assert_eq!(workspace.run(&["add"]).code, Some(2));
    assert_eq!(workspace.run(&["add", "calc.wasm", "--shipped", "calc"]).code, Some(2));
}

/// Building needs the machine's toolchain, so the environment is inherited.
#[test]
fn shipped_plugin_is_added_without_a_clone() {
    let workspace = Workspace::new();
    let target = Path::new(TOOLWIT).ancestors().nth(2).unwrap();
    let mut command = Command::new(TOOLWIT);
    command
        .args(["add", "--shipped", "files", "--json"])
        .current_dir(workspace.path())
        .env("CARGO_TARGET_DIR", target.join("demo"))
        .env("XDG_DATA_HOME", workspace.path().join("data"));
    let run: Run = command.output().unwrap().into();
    let document: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"));
    assert_eq!(document["added"][0]["name"], "files", "{run}");
    assert!(workspace.path().join("tools/files.wasm").is_file());
    assert!(workspace.path().join("tools/files.toml").is_file());
    let listed = workspace.run(&["call", "list_files"]);
    assert_eq!(listed.code, Some(0), "{listed}");
    let refused = workspace.run(&["call", "read_file", "path=/etc/hostname"]);
    assert_ne!(refused.code, Some(0), "{refused}");
    assert!(refused.to_string().contains("granted directory"), "{refused}");
}
