//! `toolwit build`.

use insta::assert_snapshot;
use serde_json::json;

use crate::guests::{DRAW, PLAIN, PLAIN_WIT};
use crate::support::Workspace;

/// Creates a project with a prebuilt component, so that nothing is compiled.
fn prebuilt_project() -> Workspace {
    Workspace::new()
        .file("plain/plain.wasm", wat::parse_str(PLAIN).unwrap())
        .file("plain/wit/plain.wit", PLAIN_WIT)
}

#[test]
fn component_path_is_printed_to_standard_output() {
    let workspace = prebuilt_project();
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
    let (code, document) = prebuilt_project().json(&["build", "plain", "--out", "tools/greeter.wasm", "--json"]);
    assert_eq!((code, &document["ok"]), (Some(0), &json!(true)), "{document}");
    assert_eq!(document["component"], "tools/greeter.wasm");
    assert_eq!(document["tools"].as_array().unwrap().len(), 6);
    assert!(document["wit_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn build_error_has_a_hint() {
    let workspace = prebuilt_project()
        .file("empty/notes.txt", "")
        .file("broken/plain.wasm", "junk");
    assert_snapshot!(workspace.run(&["build", "empty"]), @"
    exit: 2

    --- stderr
    error: nothing to build in `empty`: no `Cargo.toml`, `app.py`, `app.js`, `app.ts`, `plugin.c`, `plugin.cpp`, `plugin.zig` or `go.mod`, no `[build]` in a `toolwit.toml`, no `.wasm` file
    hint: name the directory of a Rust package or of a project in another language, or a directory with a component next to its `wit` directory
    ");
    assert_eq!(workspace.run(&["build", "missing"]).code, Some(2));
    let (code, document) = workspace.json(&["build", "broken", "--json"]);
    assert_eq!(
        (code, &document["error"]["kind"]),
        (Some(3), &json!("build")),
        "{document}"
    );
}

#[test]
fn component_is_written_to_the_target_directory_of_its_source_by_default() {
    let workspace = prebuilt_project();
    let built = workspace.run(&["build", "plain"]);
    assert_eq!(built.code, Some(0), "{built}");
    let written = std::path::Path::new(built.stdout.trim_end());
    let expected = workspace.path().join("plain/target/plugins/plain.wasm");
    assert_eq!(written.canonicalize().unwrap(), expected.canonicalize().unwrap());
    let called = workspace.run(&["call", "add", "a=1", "b=2", "--plugins", "plain/target/plugins"]);
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "3\n"), "{called}");
    // The component that the first build wrote is not a source of the next build.
    assert_eq!(workspace.run(&["build", "plain"]).code, Some(0));
    assert!(!workspace.path().join("tools/plain.wasm").exists());
}

// attack: Q5
#[test]
fn component_for_wasi_3_is_compiled_only_with_the_switch() {
    let wit = "package demo:draw; world draw { /// Draw a number.\n export draw: func() -> u64; }";
    let workspace = Workspace::new()
        .file("draw/draw.wasm", wat::parse_str(DRAW).unwrap())
        .file("draw/wit/draw.wit", wit);
    let (code, built) = workspace.json(&["build", "draw", "--out", "tools", "--json"]);
    assert_eq!((code, &built["compiled"]), (Some(0), &json!(false)), "{built}");
    let warnings = built["warnings"].to_string();
    assert!(
        warnings.contains("cannot be compiled") && warnings.contains("WASI 0.3 is disabled"),
        "{warnings}"
    );
    let (code, built) = workspace.json(&["build", "draw", "--out", "tools", "--wasi-p3", "--json"]);
    assert_eq!(
        (code, &built["compiled"], &built["warnings"]),
        (Some(0), &json!(true), &json!([])),
        "{built}"
    );
}

#[test]
fn missing_program_is_named_with_the_language_of_the_project() {
    for (file, language) in [("app.js", "JavaScript"), ("app.ts", "TypeScript")] {
        let workspace = Workspace::new()
            .file(&format!("plain/{file}"), "")
            .file("plain/wit/plain.wit", PLAIN_WIT);
        let refused = workspace.run(&["build", "plain"]);
        let message = format!("`componentize-qjs`, which builds {language}, is not installed");
        assert!(
            refused.code != Some(0) && refused.stderr.contains(&message),
            "{refused}"
        );
        assert!(refused.stderr.contains("npm install"), "{refused}");
    }
}
