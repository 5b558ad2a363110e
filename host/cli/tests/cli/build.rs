//! `toolwit build`.

use insta::assert_snapshot;
use serde_json::json;

use crate::guests::{PLAIN, PLAIN_WIT};
use crate::support::Workspace;

/// Creates a project with a prebuilt component, so that nothing is compiled.
fn prebuilt() -> Workspace {
    Workspace::new()
        .file("plain/plain.wasm", wat::parse_str(PLAIN).unwrap())
        .file("plain/wit/plain.wit", PLAIN_WIT)
}

#[test]
fn component_path_is_printed_to_standard_output() {
    let workspace = prebuilt();
    assert_snapshot!(workspace.run(&["build", "plain", "--out", "tools"]), @"
    exit: 0

    --- stdout
    tools/plain.wasm

    --- stderr
    embedding the WIT
    built plain: 961 bytes, 6 tools
    ");
    let (_, tool) = workspace.json(&["show", "halve", "--json"]);
    assert_eq!(tool["description"], "Halve an even number.", "the docs travel");
}

#[test]
fn json_document_describes_the_built_component() {
    let (code, document) = prebuilt().json(&["build", "plain", "--out", "tools/greeter.wasm", "--json"]);
    assert_eq!((code, &document["ok"]), (Some(0), &json!(true)), "{document}");
    assert_eq!(document["component"], "tools/greeter.wasm");
    assert_eq!(document["tools"].as_array().unwrap().len(), 6);
    assert!(document["wit_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn build_error_has_a_hint() {
    let workspace = prebuilt().file("empty/notes.txt", "").file("broken/plain.wasm", "junk");
    assert_snapshot!(workspace.run(&["build", "empty"]), @"
    exit: 2

    --- stderr
    error: nothing to build in `empty`: no `Cargo.toml`, `app.py`, `app.js`, `app.ts`, `plugin.c`, `plugin.cpp`, `plugin.zig` or `go.mod`, no `[build]` in a `toolwit.toml`, no `.wasm` file
    hint: name the directory of a Rust package, of a project in another language, or one that contains a component next to its `wit` directory
    ");
    assert_eq!(workspace.run(&["build", "missing"]).code, Some(2));
    let (code, document) = workspace.json(&["build", "broken", "--json"]);
    assert_eq!(
        (code, &document["error"]["kind"]),
        (Some(3), &json!("build")),
        "{document}"
    );
}
