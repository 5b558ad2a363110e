//! Plugins with dynamic tools. Commands that only read metadata run no guest code.

use std::path::Path;
use std::sync::OnceLock;

use serde_json::json;
use toolwit::build::{Build, Silent};

use crate::support::Workspace;

/// The component of the guest `menu`, built once.
fn menu() -> &'static [u8] {
    static BUILT: OnceLock<Vec<u8>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/rust/menu");
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("menu.wasm");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let built = runtime.block_on(Build::new(source).out(&out).run(&Silent));
        std::fs::read(built.unwrap().component).unwrap()
    })
}

fn with_settings(workspace: Workspace, settings: &str) -> Workspace {
    let grants = format!("version = 1\n[[grant]]\nplugin = \"menu\"\nany-version = true\nconfig = {{ {settings} }}\n");
    let workspace = workspace.file("grants.toml", grants);
    let file = workspace.path().join("grants.toml").display().to_string();
    workspace.variable("TOOLWIT_GRANTS", file)
}

fn tool_names(workspace: &Workspace) -> Vec<String> {
    let (_, listed) = workspace.json(&["list", "--json"]);
    let tools = listed["plugins"][0]["tools"].as_array().unwrap().clone();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn undiscovered_plugin_is_listed_with_a_hint() {
    let workspace = Workspace::new().file("tools/menu.wasm", menu());
    let (_, listed) = workspace.json(&["list", "--json"]);
    let plugin = &listed["plugins"][0];
    assert_eq!(
        (&plugin["status"], plugin["tools"].as_array().unwrap().len()),
        (&json!("undiscovered"), 1)
    );
    assert!(
        plugin["reason"]
            .as_str()
            .unwrap()
            .contains("have not been discovered yet"),
        "{plugin}"
    );
    let shown = workspace.run(&["list"]);
    assert!(
        shown
            .stdout
            .contains("undiscovered: its dynamic tools have not been discovered yet"),
        "{shown}"
    );
    assert!(shown.stdout.contains("toolwit refresh menu"), "{shown}");
    let unknown = workspace.run(&["show", "soup"]);
    assert!(
        unknown.code == Some(2) && unknown.stderr.contains("toolwit refresh menu"),
        "{unknown}"
    );
    let inspected = workspace.run(&["inspect", "tools/menu.wasm"]);
    assert!(
        inspected
            .stdout
            .contains("dynamic, by `toolwit:plugin/dynamic@0.1.0`: listed at run time; discovered by `toolwit add`"),
        "{inspected}"
    );
    let (_, document) = workspace.json(&["inspect", "tools/menu.wasm", "--json"]);
    assert_eq!(
        (&document["dynamic"], &document["status"]),
        (&json!(true), &json!("undiscovered"))
    );
    let (_, doctor) = workspace.json(&["doctor", "--json"]);
    assert!(doctor.to_string().contains("have not been discovered yet"), "{doctor}");
    assert_eq!(tool_names(&workspace), ["count"], "the guest was not executed");
}

#[test]
fn call_discovers_dynamic_tools_once_and_caches_them() {
    let workspace = Workspace::new().file("tools/menu.wasm", menu());
    let called = workspace.run(&["call", "soup", r#"{"guests": 2}"#]);
    assert_eq!(
        (called.code, called.stdout.as_str()),
        (Some(0), "soup {\"guests\":2} 1\n"),
        "{called}"
    );
    for message in ["soup is on the table", "Here is your soup."] {
        assert!(
            called.stderr.contains(message),
            "messages to the user are printed: {called}"
        );
    }
    assert_eq!(workspace.run(&["-q", "call", "soup", r#"{"guests": 2}"#]).stderr, "");
    // In this mode, a discovery would fail.
    let workspace = with_settings(workspace, "mode = \"closed\"");
    assert_eq!(tool_names(&workspace), ["count", "soup", "tea"]);
    let shown = workspace.run(&["show", "soup"]);
    assert!(shown.stdout.contains("Cooks soup for some guests."), "{shown}");
    assert!(workspace.run(&["search", "cooking", "tea"]).stdout.starts_with("tea"));
    let refused = workspace.run(&["call", "soup", r#"{"guests": 20}"#]);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("/guests"),
        "{refused}"
    );
    let script = workspace.run_with_input(
        &["call", "--script", "-"],
        r#"{"tool": "tea", "arguments": {"guests": 1}}"#,
    );
    assert_eq!(script.code, Some(0), "{script}");
}

#[test]
fn add_discovers_dynamic_tools_and_refresh_discovers_them_again() {
    let workspace = Workspace::new().file("menu.wasm", menu());
    let (code, added) = workspace.json(&["add", "menu.wasm", "--json"]);
    assert_eq!((code, &added["added"][0]["tools"]), (Some(0), &json!(3)), "{added}");
    assert_eq!(tool_names(&workspace), ["count", "soup", "tea"]);

    let workspace = with_settings(workspace, "dishes = \"cake\"");
    let refreshed = workspace.run(&["refresh", "menu"]);
    assert_eq!(
        (refreshed.code, refreshed.stdout.as_str()),
        (Some(0), "menu  2 tools\n"),
        "{refreshed}"
    );
    assert_eq!(tool_names(&workspace), ["count", "cake"]);

    let workspace = with_settings(workspace, "mode = \"twice\"");
    let (code, refused) = workspace.json(&["refresh", "--json"]);
    assert_eq!(
        (code, &refused["refreshed"][0]["error"]["kind"]),
        (Some(3), &json!("invalid-provider")),
        "{refused}"
    );
    assert_eq!(
        tool_names(&workspace),
        ["count", "cake"],
        "the previously discovered tools remain"
    );
    assert_eq!(workspace.run(&["refresh", "absent"]).code, Some(2));
}

#[test]
fn plugin_that_lists_no_tools_is_added_with_the_reason() {
    let workspace = with_settings(Workspace::new().file("menu.wasm", menu()), "mode = \"closed\"");
    let added = workspace.run(&["add", "menu.wasm"]);
    assert!(
        added.code == Some(0) && added.stderr.contains("the kitchen is closed"),
        "{added}"
    );
    let called = workspace.run(&["call", "soup", r#"{"guests": 2}"#]);
    assert!(
        called.code != Some(0) && called.stderr.contains("the kitchen is closed"),
        "{called}"
    );
    let workspace = with_settings(workspace, "dishes = \"soup\"");
    assert_eq!(
        workspace.run(&["call", "soup", r#"{"guests": 2}"#]).code,
        Some(0),
        "a failed discovery is not cached"
    );
}

#[test]
fn plugin_whose_discovery_fails_is_added_and_its_other_tools_work() {
    let workspace = Workspace::new()
        .file("menu.wasm", menu())
        .file("grants.toml", "no grants at all");
    let file = workspace.path().join("grants.toml").display().to_string();
    let workspace = workspace.variable("TOOLWIT_GRANTS", file);
    let (code, added) = workspace.json(&["add", "menu.wasm", "--json"]);
    assert_eq!((code, &added["added"][0]["name"]), (Some(0), &json!("menu")), "{added}");
    assert!(added["added"][0]["discovery_error"].is_string(), "{added}");

    let workspace = with_settings(workspace, "mode = \"closed\"");
    let refused = workspace.run(&["refresh"]);
    assert!(
        refused.code == Some(3) && refused.stdout.contains("the kitchen is closed"),
        "{refused}"
    );
    let counted = workspace.run(&["call", "count"]);
    assert_eq!((counted.code, counted.stdout.as_str()), (Some(0), "0\n"), "{counted}");
}
